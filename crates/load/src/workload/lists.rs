//! The lists of lines that a workload file names: in it, or in files beside it. Everything that is
//! read from disk for a workload is read here.

use super::template::Lists;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Most bytes of a workload file, and of each file of lines.
const MOST_BYTES: u64 = 4 << 20;

/// The lists of lines that the placeholders of a file name.
pub(super) struct NamedLists {
    /// Those of the file itself.
    pub inline: BTreeMap<String, Vec<String>>,
    pub folder: Option<PathBuf>,
    /// Those that were asked for, in the order of `lists`.
    pub names: Vec<String>,
    pub lists: Vec<Vec<Vec<u8>>>,
}

impl Lists for NamedLists {
    fn find(&mut self, name: &str) -> Result<usize, String> {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            return Ok(at);
        }
        let lines: Vec<String> = match (self.inline.get(name), &self.folder) {
            (Some(lines), _) => lines.clone(),
            (None, Some(folder)) => read(&folder.join(name))?.lines().map(str::to_owned).collect(),
            (None, None) => return Err(format!("its lines {name:?} are not in [lines]")),
        };
        if lines.is_empty() {
            return Err(format!("{name} has no lines; write one a line"));
        }
        if lines.iter().any(|line| line.contains('\n')) {
            return Err(format!("a line of {name} has a newline in it; write one a line"));
        }
        self.names.push(name.into());
        self.lists.push(lines.into_iter().map(String::into_bytes).collect());
        Ok(self.lists.len() - 1)
    }

    fn longest(&self, list: usize) -> usize {
        self.lists[list].iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl NamedLists {
    /// The text of the file, with the lines that came from elsewhere in it.
    pub fn put_into(&self, text: &str) -> Result<String, String> {
        let from_elsewhere = |(name, _): &(&String, _)| !self.inline.contains_key(*name);
        let mut lists = self.names.iter().zip(&self.lists).filter(from_elsewhere).peekable();
        if lists.peek().is_none() {
            return Ok(text.into());
        }
        let mut file: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let table = file.entry("lines").or_insert_with(|| toml::Table::new().into());
        for (name, list) in lists {
            let lines = list.iter().map(|line| String::from_utf8_lossy(line).into_owned());
            let lines: Vec<toml::Value> = lines.map(toml::Value::from).collect();
            if let Some(table) = table.as_table_mut() {
                table.insert(name.clone(), lines.into());
            }
        }
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}

/// The text of a file that is not too large.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let cannot = |error: std::io::Error| format!("cannot read {name}: {error}");
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(format!(
            "cannot read {name}: expected a file of at most {} MiB",
            MOST_BYTES >> 20
        ));
    }
    fs::read_to_string(path).map_err(cannot)
}
