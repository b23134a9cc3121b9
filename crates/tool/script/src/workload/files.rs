//! The files whose content a workload file sends (`body_file`): next to it, or inline under
//! `[files]`.

use super::disk;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use std::{collections::BTreeMap, path::Path};

/// The content of a file as written in a workload file: a text, or `{ base64 = "…" }`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "toml::Value")]
pub(crate) struct FileContent(Vec<u8>);

impl TryFrom<toml::Value> for FileContent {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        if let toml::Value::String(text) = value {
            return Ok(FileContent(text.into_bytes()));
        }
        let coded = value.as_table().filter(|table| table.len() == 1);
        let coded = coded.and_then(|table| table.get("base64")?.as_str());
        coded.and_then(|coded| BASE64_STANDARD.decode(coded).ok()).map(FileContent).ok_or_else(
            || "expected the content of a file as text, or as { base64 = \"aGVsbG8=\" }".into(),
        )
    }
}

impl FileContent {
    fn to_toml(&self) -> toml::Value {
        match std::str::from_utf8(&self.0) {
            Ok(text) => text.into(),
            Err(_) => {
                let coded = BASE64_STANDARD.encode(&self.0);
                toml::Table::from_iter([("base64".to_owned(), coded.into())]).into()
            }
        }
    }
}

/// The files that requests name.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Files in the workload file itself.
    inline: BTreeMap<String, FileContent>,
    /// Files read from disk.
    read: BTreeMap<String, FileContent>,
}

impl Files {
    pub fn new(inline: BTreeMap<String, FileContent>) -> Self {
        Files { inline, read: BTreeMap::new() }
    }

    /// Returns the content of the file of this name; reads it now if necessary.
    pub fn find(&mut self, name: &str, folder: Option<&Path>) -> Result<Vec<u8>, String> {
        if let Some(content) = self.inline.get(name).or(self.read.get(name)) {
            return Ok(content.0.clone());
        }
        let folder = folder.ok_or_else(|| format!("the content of {name:?} is not in [files]"))?;
        let content = disk::read_bytes(&folder.join(name))?;
        self.read.insert(name.into(), FileContent(content.clone()));
        Ok(content)
    }

    /// Returns the files that were read from disk, for the text of the workload file.
    pub fn read_from_elsewhere(&self) -> impl Iterator<Item = (String, toml::Value)> {
        self.read.iter().map(|(name, content)| (name.clone(), content.to_toml()))
    }
}
