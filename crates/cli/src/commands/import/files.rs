//! Writes generated files, but never over a file that the user has changed. The first line of each has a digest
//! of the others: if it still fits, nothing was changed.

use anyhow::Context;
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Starts the first line, which ends with the digest.
const MARK: &str =
    "# Made by regatta import. If you change this file, it is not overwritten. Digest: ";

/// A file to be written.
#[derive(Debug)]
pub struct Generated {
    /// Its path, relative to the working directory.
    pub path: PathBuf,
    /// Its text, without the first line.
    pub text: String,
}

/// What was done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// There was none.
    New,
    /// It had another text, which was generated too.
    Updated,
    /// It had this text.
    Same,
    /// The user has changed it or made it, so it was kept.
    Kept,
}

impl Generated {
    /// Writes it below `folder`, unless the user has changed it.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<Written> {
        let path = folder.join(&self.path);
        let text = marked(&self.text);
        let written = match fs::read(&path) {
            Ok(there) if there == text.as_bytes() => return Ok(Written::Same),
            Ok(there) if !is_generated(&there) => return Ok(Written::Kept),
            Ok(_) => Written::Updated,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Written::New,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, text)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(written)
    }
}

/// Returns a text with its first line.
fn marked(text: &str) -> String {
    format!("{MARK}{:016x}\n{text}", digest(text.as_bytes()))
}

/// Whether a text was generated and not changed since.
fn is_generated(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    let (first, others) = text.split_at(end);
    first == format!("{MARK}{:016x}\n", digest(others)).as_bytes()
}

/// The first 64 bits of the SHA-256.
fn digest(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_file_is_updated_until_the_user_changes_it() {
        let folder = TempDir::new().unwrap();
        let of = |text: &str| Generated { path: "a/b.toml".into(), text: text.to_owned() };
        let path = folder.path().join("a/b.toml");
        assert_eq!(of("x = 1\n").write(folder.path()).unwrap(), Written::New);
        assert_eq!(of("x = 1\n").write(folder.path()).unwrap(), Written::Same);
        assert_eq!(of("x = 2\n").write(folder.path()).unwrap(), Written::Updated);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("\nx = 2\n"), "{text}");
        for changed in [text.replace("2", "3"), text + "# mine\n", String::new(), "x = 2\n".into()]
        {
            fs::write(&path, &changed).unwrap();
            assert_eq!(of("x = 4\n").write(folder.path()).unwrap(), Written::Kept);
            assert_eq!(fs::read_to_string(&path).unwrap(), changed);
        }
    }
}
