//! The table of contents of the book.

use crate::support::docs::{files, page::Page, root};
use std::{collections::BTreeSet, path::PathBuf, process::Command};

#[test]
fn the_table_of_contents_names_every_page_once() {
    let src = root().join("docs/src");
    let summary = src.join("SUMMARY.md");
    let listed: Vec<PathBuf> =
        Page::read(&summary).links.into_iter().map(|(_, link)| src.join(link)).collect();
    let mut pages: BTreeSet<PathBuf> = files(&src, "md").into_iter().collect();
    pages.remove(&summary);
    let as_set: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(as_set, pages, "left: in SUMMARY.md; right: in docs/src");
    assert_eq!(as_set.len(), listed.len(), "a page is listed twice");
    assert!(pages.len() > 15, "only {} pages were found", pages.len());
}

/// Only where mdBook is installed: to compile it takes several minutes.
#[test]
#[cfg_attr(not(has_mdbook), ignore = "mdbook is not installed (cargo install mdbook)")]
fn mdbook_builds_the_book() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut build = Command::new("mdbook");
    build.arg("build").arg(root().join("docs")).arg("-d").arg(folder.path());
    let built = build.output().expect("mdbook starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(folder.path().join("index.html").is_file());
}
