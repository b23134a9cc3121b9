//! Each protocol is named only in its own folder and in the table: no other file of the crates that must
//! not know a protocol names one.

use super::{sources, workspace};
use regatta_script::dialects::ROWS;
use std::{fs, path::Path};

/// The crates that must not know a protocol.
const CRATES: [&str; 6] = ["script", "load", "record", "judge", "host", "race"];

/// The folders of the protocols, and the table that lists them: only they may name a protocol. The text
/// of flags is in `cli`.
const FOLDERS: &str = "crates/tool/script/src/dialects";
const TABLE: &str = "crates/tool/script/src/dialects/mod.rs";

/// The folder of the protocol that adopts the workloads of `http`, and may name it. It has no URLs of its
/// own.
const ADOPTING: &str = "http2";

/// A name that is also an ordinary word.
const WORD: &str = "line";

/// Returns the first line of a file that names a protocol outside a link. A line that includes a file may have its name:
/// that of a bundled race.
fn naming_line(file: &Path, names: &[&str]) -> Option<String> {
    let text = fs::read_to_string(file).expect("a source file").to_ascii_lowercase();
    let mut lines = text.lines().enumerate();
    let is_naming = |line: &str| {
        let line = line.replace("https://", "").replace("http://", "");
        !line.contains("include_str!") && names.iter().any(|name| line.contains(name))
    };
    lines
        .find(|(_, line)| is_naming(line))
        .map(|(i, line)| format!("{}:{}: {}", file.display(), i + 1, line.trim()))
}

#[test]
fn no_protocol_is_named_outside_its_folder_and_the_table() {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).filter(|name| *name != WORD).collect();
    assert!(names.contains(&"http") && names.len() + 1 == ROWS.len(), "{names:?}");
    let root = workspace();
    let mut found = Vec::new();
    for name in CRATES {
        for file in sources(&root.join("crates/tool").join(name).join("src")) {
            let path = file.strip_prefix(&root).expect("below the checkout");
            let is_own = path.starts_with(FOLDERS);
            if !is_own {
                found.extend(naming_line(&file, &names));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_folder_names_the_protocol_of_another_and_each_has_one_line_in_the_table() {
    let root = workspace();
    let table = fs::read_to_string(root.join(TABLE)).expect("the table");
    for row in ROWS {
        let others: Vec<&str> = ROWS
            .iter()
            .map(|row| row.name)
            .filter(|name| *name != row.name && *name != WORD)
            // A WebSocket starts with an HTTP request, and a call of gRPC is one over HTTP/2.
            .filter(|name| !matches!((row.name, *name), ("websocket", "http") | ("grpc", "http")))
            .chain((row.name != "grpc").then_some(ADOPTING))
            .collect();
        let folder = root.join(FOLDERS).join(row.name);
        let found: Vec<String> =
            sources(&folder).iter().filter_map(|file| naming_line(file, &others)).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
        let in_table = format!(": {}::", row.name);
        let is_own = |line: &&str| line.contains(row.name) && !line.contains(ADOPTING);
        let lines: Vec<&str> = table.lines().filter(is_own).collect();
        if row.name != WORD {
            assert_eq!(lines.len(), 2, "expected its `mod` and its line: {lines:?}");
        }
        assert!(table.lines().any(|line| line.contains(&in_table)), "{}", row.name);
    }
}

#[test]
fn names_are_found_in_any_case_and_links_are_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.rs");
    let names = |text: &str| {
        fs::write(&file, text).expect("written");
        naming_line(&file, &["http"])
    };
    assert!(
        names("fn a() {}\n// of HTTP\n").is_some_and(|line| line.ends_with("a.rs:2: // of http"))
    );
    assert!(names("let is_Http = 1;").is_some());
    assert!(names("// see https://example.org").is_none());
    assert!(names("(\"http\", include_str!(\"http.toml\"))").is_none());
}
