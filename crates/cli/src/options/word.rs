//! Secrets in files, e.g. tokens and passwords.

use anyhow::{Context, bail};
use std::{fs, path::Path};

/// The word in a file. `what`: what it is, for messages.
///
/// # Errors
/// Fails if the file cannot be read, or contains something else.
pub fn word(path: &Path, what: &str) -> anyhow::Result<String> {
    let text = String::from_utf8(read(path)?);
    let text = text.with_context(|| format!("the {what} in {} is not UTF-8", path.display()))?;
    let word = text.trim();
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "{} contains no {what}: expected one word of printable ASCII characters",
            path.display()
        );
    }
    Ok(word.to_owned())
}

/// The content of a file.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
