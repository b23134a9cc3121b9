//! A workload file: its text, in TOML, and what is the same in all of them, whatever their protocol.
//! The files that it names are read with it, so that its text and nothing else need be kept.

use super::{
    conversation::Conversation,
    disk,
    files::{FileContent, Files},
    lists::NamedLists,
};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A workload file cannot be used: what is wrong, and how it is written rightly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workload {origin}: {because}")]
pub struct WorkloadError {
    /// The file's path, or the name of the workload.
    pub(crate) origin: String,
    pub(crate) because: String,
}

/// A workload file that is being read.
#[derive(Debug)]
pub struct FileText<'t> {
    text: &'t str,
    /// Its name, where the text gives none.
    stem: &'t str,
    /// Where the files are that it names; `None` if all must stand in the text.
    folder: Option<PathBuf>,
}

/// What is kept of a workload file, beside its requests.
#[derive(Debug)]
pub(crate) struct Kept {
    /// That of the file's `name`, or else of the file without its ending.
    pub name: String,
    /// A text that says all of it, without any other file.
    pub text: String,
    /// The lists that its templates draw from.
    pub lists: Vec<Vec<Vec<u8>>>,
}

/// What a workload file says of itself, whatever its protocol.
#[derive(Deserialize)]
struct Head {
    protocol: Option<String>,
}

/// Most `[[request]]` of a file.
const MOST_REQUESTS: usize = 1_000;

impl<'t> FileText<'t> {
    /// Reads a workload file from disk and hands it to `read`.
    pub(crate) fn read<T>(
        path: &Path,
        read: impl FnOnce(FileText<'_>) -> Result<T, String>,
    ) -> Result<T, WorkloadError> {
        let origin = path.display().to_string();
        let error = |because| WorkloadError { origin: origin.clone(), because };
        let text = disk::read(path).map_err(error)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        read(FileText { text: &text, stem: &stem, folder: Some(folder.into()) }).map_err(error)
    }

    /// A text that needs no other file. `name` is its name where the text has none.
    pub(crate) fn alone(text: &'t str, name: &'t str) -> Self {
        FileText { text, stem: name, folder: None }
    }

    /// The protocol that it names, if it names one.
    pub(crate) fn protocol(&self) -> Result<Option<String>, String> {
        self.parse::<Head>().map(|head| head.protocol)
    }

    /// What it says, in the form that its protocol gives it.
    pub(crate) fn parse<F: DeserializeOwned>(&self) -> Result<F, String> {
        toml::from_str(self.text).map_err(|error| error.to_string())
    }

    /// The lists of lines and the files that its requests can name.
    pub(crate) fn lists(
        &self,
        lines: BTreeMap<String, Vec<String>>,
        files: BTreeMap<String, FileContent>,
    ) -> NamedLists {
        NamedLists::new(lines, Files::new(files), self.folder.clone())
    }

    /// What is to be kept of it: `name` is the one that it gives itself, `lists` is what was read.
    pub(crate) fn keep(self, name: Option<String>, lists: NamedLists) -> Result<Kept, String> {
        let name = name.unwrap_or_else(|| self.stem.into());
        check_name(&name)?;
        Ok(Kept { name, text: lists.put_into(self.text)?, lists: lists.lists })
    }
}

/// Reads each `[[request]]`; `example` is what one has at least.
pub(crate) fn conversations<R, S>(
    requests: Vec<R>,
    example: &str,
    mut read: impl FnMut(R) -> Result<Conversation<S>, String>,
) -> Result<Vec<Conversation<S>>, String> {
    if requests.is_empty() || requests.len() > MOST_REQUESTS {
        return Err(format!(
            "it has {} requests; expected 1 to {MOST_REQUESTS}, each as [[request]] with {example}",
            requests.len()
        ));
    }
    let numbered = requests.into_iter().enumerate();
    numbered
        .map(|(i, request)| read(request).map_err(|why| format!("request {}{why}", i + 1)))
        .collect()
}

fn check_name(name: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_good = name.chars().all(is_good) && !name.ends_with(".toml");
    if name.is_empty() || name.len() > 100 || !is_good {
        return Err(format!(
            "the name {name:?} cannot be used: a name has letters, digits, '-', '_' and '.', and \
             does not end in .toml; write: name = \"mine\""
        ));
    }
    Ok(())
}
