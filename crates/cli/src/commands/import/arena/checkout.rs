//! A checkout of HttpArena: the folders of its entries, and what its containers see.

use super::text;
use anyhow::{Context, bail};
use regatta_script::read_at_most;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Maximum number of entries. In 2026 it had about 180.
const MOST_ENTRIES: usize = 2_000;

/// What the container of every entry sees: paths in the checkout, and in the container.
const MOUNTS: [(&str, &str); 3] = [
    ("data/dataset.json", "/data/dataset.json"),
    ("data/static", "/data/static"),
    ("certs", "/certs"),
];

/// An entry, or a part of it, that is not imported, and why.
pub type LeftOut = (String, String);

/// A checkout.
#[derive(Debug)]
pub struct Checkout {
    /// Its absolute path.
    dir: PathBuf,
    /// The same as text.
    text: String,
    /// What it lacks of [`MOUNTS`], and why.
    missing: Vec<LeftOut>,
}

impl Checkout {
    /// Opens a checkout.
    ///
    /// # Errors
    /// If the folder is not a checkout, or its path cannot be mounted.
    pub fn open(dir: &Path) -> anyhow::Result<Checkout> {
        let dir =
            fs::canonicalize(dir).with_context(|| format!("cannot open {}", dir.display()))?;
        let Some(text) =
            dir.to_str().filter(|text| !text.chars().any(|c| c == ':' || c.is_control()))
        else {
            bail!(
                "the path {:?} has a colon, a control character or is not UTF-8, so it cannot be mounted into \
                 containers; move the checkout",
                dir.display()
            );
        };
        if !is_folder(&dir.join("frameworks")) {
            bail!(
                "{text} is not a checkout of HttpArena: it has no folder `frameworks`; clone \
                 https://github.com/MDA2AV/HttpArena and give its folder"
            );
        }
        let mut checkout = Checkout { text: text.to_owned(), dir, missing: Vec::new() };
        let lacks = |(from, to): (&str, &str)| {
            let why = checkout.why_not_mounted(from)?;
            Some((
                format!("the mount {to}"),
                format!("{from} {why}; entries that need it do not start"),
            ))
        };
        checkout.missing = MOUNTS.into_iter().filter_map(lacks).collect();
        Ok(checkout)
    }

    /// Why a part of the checkout is not mounted. Every part of its path must be a real one: a link may lead anywhere
    /// on this machine.
    fn why_not_mounted(&self, from: &str) -> Option<&'static str> {
        let mut path = self.dir.clone();
        for part in from.split('/') {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Err(_) => return Some("does not exist in the checkout"),
                Ok(metadata) if metadata.is_symlink() => return Some("is a symbolic link"),
                Ok(_) => {}
            }
        }
        None
    }

    /// What it lacks, and why.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.missing.clone()
    }

    /// Returns what its containers see: absolute paths of this machine, and paths in the container.
    pub fn mounts(&self) -> impl Iterator<Item = (String, &'static str)> {
        let there = MOUNTS.into_iter().filter(|(from, _)| self.why_not_mounted(from).is_none());
        there.map(|(from, to)| (format!("{}/{from}", self.text), to))
    }

    /// Returns the names of the entries, sorted; only `wanted` ones, unless that is empty.
    ///
    /// # Errors
    /// If there is no entry of a wanted name, or there are too many entries.
    pub fn names(&self, wanted: &[String]) -> anyhow::Result<Vec<String>> {
        let folder = self.dir.join("frameworks");
        let read = || fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name())).collect();
        let names: std::io::Result<Vec<_>> = read();
        let names = names.with_context(|| format!("cannot read {}", folder.display()))?;
        if names.len() > MOST_ENTRIES {
            bail!(
                "{} has {} entries; at most {MOST_ENTRIES} are read",
                folder.display(),
                names.len()
            );
        }
        // Hidden files and those beside the entries, such as a README, are no entries.
        let is_entry = |name: &String| !name.starts_with('.') && !folder.join(name).is_file();
        let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(is_entry).collect();
        names.sort();
        check_names(wanted, &names)?;
        names.retain(|name| wanted.is_empty() || wanted.contains(name));
        Ok(names)
    }

    /// Returns the folder of an entry.
    pub fn entry(&self, name: &str) -> PathBuf {
        self.dir.join("frameworks").join(name)
    }

    /// Returns the same as text. `name` must be the name of an entry that was read.
    pub fn entry_text(&self, name: &str) -> String {
        format!("{}/frameworks/{name}", self.text)
    }

    /// Returns the dataset of the profiles with JSON, or why there is none.
    pub fn dataset(&self) -> Result<Vec<u8>, String> {
        const MOST: u64 = 4 << 20;
        let from = MOUNTS[0].0;
        match self.why_not_mounted(from) {
            Some(why) => Err(format!("{from} {why}")),
            None => read(&self.dir.join(from), MOST).map_err(|why| format!("{from} {why}")),
        }
    }

    /// Returns the first line of its licence.
    pub fn licence(&self) -> String {
        let read = read(&self.dir.join("LICENSE"), 1 << 20).unwrap_or_default();
        let first = String::from_utf8_lossy(&read).lines().next().map(|line| text::shown(line, 60));
        first.filter(|line| !line.is_empty()).unwrap_or_else(|| "no file LICENSE".into())
    }
}

/// Returns an error for names that do not exist.
fn check_names(wanted: &[String], known: &[String]) -> anyhow::Result<()> {
    let Some(wrong) = wanted.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let first = wrong.chars().next();
    let alike: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|name| name.chars().next() == first)
        .take(20)
        .collect();
    let hint = match alike.is_empty() {
        true => String::new(),
        false => {
            format!("; those with the same first letter: {}", text::shown(&alike.join(", "), 500))
        }
    };
    bail!("there is no entry {wrong:?} in the folder `frameworks`{hint}");
}

/// Whether there is a folder, and not a link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Whether there is a file, and not a link to one.
pub fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Reads a file of at most `most` bytes that is not a link. The error is the second part of a sentence.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    if !is_file(path) {
        return Err("is not a file of the checkout".into());
    }
    let bytes = read_at_most(path, most).map_err(|error| format!("cannot be read: {error}"))?;
    bytes.ok_or_else(|| format!("has more than {most} bytes"))
}
