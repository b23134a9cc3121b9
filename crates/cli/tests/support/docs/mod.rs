//! The pages of the documentation, and what runs or checks their commands.

pub mod commands;
pub mod page;
pub mod scene;

use std::path::{Path, PathBuf};

/// The checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// Returns the files of a folder and of the folders in it with this ending, sorted.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|its| its == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The pages with commands: README.md and those of the book.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs/src"), "md");
    pages.insert(0, root().join("README.md"));
    pages
}
