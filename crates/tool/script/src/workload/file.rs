//! A workload file: its TOML text, and the parts that all protocols share. The files that it names
//! are read with it, so that its text alone can be kept.

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

/// A workload file cannot be used: what is wrong, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workload {origin}: {because}")]
pub struct WorkloadError {
    /// The file's path, or the name of the workload.
    pub(crate) origin: String,
    pub(crate) because: String,
}

/// A workload file while it is being read.
#[derive(Debug)]
pub struct FileText<'t> {
    text: &'t str,
    /// Its name if the text gives none: for a file on disk, the file name without its extension.
    stem: &'t str,
    /// The folder of the files that it names; `None` if the text must contain everything.
    folder: Option<PathBuf>,
}

/// What is kept of a workload file, besides its requests.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The `name` in the file; if there is none, [`FileText::stem`].
    pub name: String,
    /// A text that needs no other file.
    pub text: String,
    /// The lists that its templates draw from.
    pub lists: Vec<Vec<Vec<u8>>>,
}

/// A workload file, as its protocol reads it.
pub(crate) trait WorkloadFile: Sized {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, and how to correct it.
    fn read(file: FileText<'_>) -> Result<Self, String>;

    /// What is kept of it, besides its requests.
    fn kept(&self) -> &Kept;
}

/// The key of a workload file that decides how the others are read.
#[derive(Deserialize)]
struct Head {
    protocol: Option<String>,
}

/// Maximum number of `[[request]]` in a file.
const MOST_REQUESTS: usize = 1_000;

impl<'t> FileText<'t> {
    /// Reads a workload file from disk and passes it to `read`.
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

    /// Creates a file from a text that needs no other file. `name` is its name if the text gives
    /// none.
    pub(crate) fn alone(text: &'t str, name: &'t str) -> Self {
        FileText { text, stem: name, folder: None }
    }

    /// Returns the protocol that it names, if any.
    pub(crate) fn protocol(&self) -> Result<Option<String>, String> {
        self.parse::<Head>().map(|head| head.protocol)
    }

    /// Parses the text into the form of its protocol.
    pub(crate) fn parse<F: DeserializeOwned>(&self) -> Result<F, String> {
        toml::from_str(self.text).map_err(|error| error.to_string())
    }

    /// Returns the lists of lines and the files that its requests can name.
    pub(crate) fn lists(
        &self,
        lines: BTreeMap<String, Vec<String>>,
        files: BTreeMap<String, FileContent>,
    ) -> NamedLists {
        NamedLists::new(lines, Files::new(files), self.folder.clone())
    }

    /// Returns what to keep of it. `name` is the name in the file, `lists` the files and lists that
    /// were read.
    pub(crate) fn keep(self, name: Option<String>, lists: NamedLists) -> Result<Kept, String> {
        let name = name.unwrap_or_else(|| self.stem.into());
        check_name(&name)?;
        Ok(Kept { name, text: lists.put_into(self.text)?, lists: lists.lists })
    }
}

/// Reads each `[[request]]`; `example` shows the minimum content of one.
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
            "the name {name:?} cannot be used: a name consists of letters, digits, '-', '_' and '.', and \
             does not end in .toml; write: name = \"mine\""
        ));
    }
    Ok(())
}
