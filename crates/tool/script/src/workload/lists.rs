//! The lists of lines that a workload file names: inline, or in files next to it.

use super::{disk, draw::Text, files::Files, template::Lists};
use std::{collections::BTreeMap, path::PathBuf};

/// The lists of lines that the placeholders of a workload file name.
pub(crate) struct NamedLists {
    /// Lists in the workload file itself.
    inline: BTreeMap<String, Vec<String>>,
    folder: Option<PathBuf>,
    /// Names of the lists that placeholders use, in the order of `lists`.
    pub names: Vec<String>,
    pub lists: Vec<Vec<Vec<u8>>>,
    files: Files,
}

impl Lists for NamedLists {
    fn find(&mut self, name: &str) -> Result<usize, String> {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            return Ok(at);
        }
        let lines: Vec<String> = match (self.inline.get(name), &self.folder) {
            (Some(lines), _) => lines.clone(),
            (None, Some(folder)) => {
                disk::read(&folder.join(name))?.lines().map(str::to_owned).collect()
            }
            (None, None) => return Err(format!("the lines {name:?} are not in [lines]")),
        };
        if lines.is_empty() {
            return Err(format!("{name} is empty; write one item per line"));
        }
        if lines.iter().any(|line| line.contains('\n')) {
            return Err(format!("an item of {name} contains a newline; write one item per line"));
        }
        self.names.push(name.into());
        self.lists.push(lines.into_iter().map(String::into_bytes).collect());
        Ok(self.lists.len() - 1)
    }

    fn text(&self, list: usize) -> Text {
        let lines = &self.lists[list];
        Text {
            longest: lines.iter().map(Vec::len).max().unwrap_or(0),
            controls: lines.iter().flatten().any(u8::is_ascii_control),
        }
    }
}

impl NamedLists {
    /// Creates the lists of a workload file; `folder` holds the files that are not inline.
    pub fn new(
        inline: BTreeMap<String, Vec<String>>,
        files: Files,
        folder: Option<PathBuf>,
    ) -> Self {
        NamedLists { inline, folder, names: Vec::new(), lists: Vec::new(), files }
    }

    /// Returns the content of a file.
    pub fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.files.find(name, self.folder.as_deref())
    }

    /// Returns the text of the workload file with everything that was read from disk inlined.
    pub fn put_into(&self, text: &str) -> Result<String, String> {
        let from_elsewhere = |(name, _): &(&String, _)| !self.inline.contains_key(*name);
        let lists = self.names.iter().zip(&self.lists).filter(from_elsewhere);
        let lists = lists.map(|(name, list)| {
            let lines = list.iter().map(|line| String::from_utf8_lossy(line).into_owned());
            (name.clone(), lines.collect::<Vec<_>>().into())
        });
        let more: [(&str, Vec<(String, toml::Value)>); 2] =
            [("lines", lists.collect()), ("files", self.files.read_from_elsewhere().collect())];
        if more.iter().all(|(_, values)| values.is_empty()) {
            return Ok(text.into());
        }
        let mut file: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        for (key, values) in more.into_iter().filter(|(_, values)| !values.is_empty()) {
            let table = file.entry(key).or_insert_with(|| toml::Table::new().into());
            if let Some(table) = table.as_table_mut() {
                table.extend(values);
            }
        }
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}
