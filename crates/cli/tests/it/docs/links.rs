//! The links of all Markdown files of the checkout: relative ones lead to files and headings that exist.
//! External ones are only checked for their form, because tests need no network.

use crate::support::docs::{page::Page, root};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// All Markdown files that git tracks or would track.
fn documents() -> Vec<PathBuf> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"];
    let listed = Command::new("git").args(args).current_dir(root()).output().expect("git");
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let paths = listed.split_terminator('\0').map(|path| root().join(path));
    paths.filter(|path| path.exists()).collect()
}

/// Returns why a link does not resolve. `pages` caches the pages that were read.
fn broken(from: &Path, link: &str, pages: &mut HashMap<PathBuf, Vec<String>>) -> Option<String> {
    if let Some((scheme, rest)) = link.split_once("://") {
        let host = rest.split(['/', '#', '?']).next().unwrap_or_default();
        let is_host = host.contains('.')
            && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
        let is_fine = scheme == "https" && is_host && !rest.contains(char::is_whitespace);
        return (!is_fine).then(|| "expected https://HOST/PATH".to_owned());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => from.to_owned(),
        _ => from.parent().expect("a folder").join(path),
    };
    let Ok(target) = target.canonicalize() else { return Some("there is no such file".into()) };
    let book = root().join("docs/src");
    if from.starts_with(&book) && !target.starts_with(&book) {
        return Some("a page of the book links only to the book and to https://".into());
    }
    if anchor.is_empty() {
        return None;
    }
    if target.extension().is_none_or(|ending| ending != "md") {
        return Some("only Markdown files have anchors".into());
    }
    let read = || Page::from_text(&fs::read_to_string(&target).expect("a page")).anchors;
    let anchors = pages.entry(target.clone()).or_insert_with(read);
    let found = anchors.iter().any(|one| one == anchor);
    (!found).then(|| format!("there is no heading #{anchor}, only {}", anchors.join(", ")))
}

#[test]
fn every_link_resolves() {
    let (mut pages, mut wrong, mut count) = (HashMap::new(), Vec::new(), 0);
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a page");
        for (line, link) in Page::from_text(&text).links {
            count += 1;
            let broken = broken(&path, &link, &mut pages);
            wrong.extend(broken.map(|why| format!("{}:{line}: {link}: {why}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "only {count} links were found");
}

#[test]
fn a_broken_link_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("a.md");
    fs::write(&page, "# One two\n").expect("a file");
    let is_broken = |link: &str| broken(&page, link, &mut HashMap::new()).is_some();
    for fine in ["a.md", "#one-two", "a.md#one-two", "https://example.com/a#b"] {
        assert!(!is_broken(fine), "{fine}");
    }
    for wrong in ["b.md", "#one", "a.md#one_two", "http://example.com", "https://a b.com", "/a.md"]
    {
        assert!(is_broken(wrong), "{wrong}");
    }
}
