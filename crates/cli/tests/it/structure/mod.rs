//! The structure of the source: at most 15 files in a folder, no cycle of files of a crate that need each
//! other, and none of its folders (the first and the last with lists of exceptions). `protocols` and `words`
//! check where protocols are named, and which phrases occur. Clippy limits the lines of functions.
//!
//! File A *needs* file B of the same crate if a path in A (in a `use`, a type, an expression, a
//! pattern, or among the tokens of a macro) leads to an item that B defines. Re-exports are followed to
//! the definition. So a parent that only declares its children and re-exports their items needs none of
//! them, and a child that names an item through its parent needs the file that defines the item. A
//! cycle is a set of files that all need each other, directly or indirectly.
//!
//! The analysis does not resolve methods and fields to types, and does not see names that macros
//! generate. It ignores test code (`#[cfg(test)]`).

mod modules;
mod names;
mod protocols;
mod words;

use modules::Crate;
use petgraph::{algo::tarjan_scc, graphmap::DiGraphMap};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Files of a folder, beside its front page (`lib.rs`, `main.rs`, `mod.rs`) and its `tests.rs`.
const MOST_FILES: usize = 15;

/// Folders with too many files.
const FULL_FOLDERS: &[&str] = &[
    "crates/cli/src/commands/load",
    "crates/engine/src/simulator",
    "crates/script/src/dialects/http",
    "crates/script/src/dialects/redis",
];

/// Crates with folders that need each other.
const TANGLED_CRATES: &[&str] = &["cli", "engine", "load", "record", "shard"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// Returns the folders of the workspace's crates.
fn crates() -> Vec<PathBuf> {
    let folder = workspace().join("crates");
    let entries = fs::read_dir(folder).expect("crates/");
    let mut crates: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder").path()).collect();
    crates.retain(|folder| folder.join("Cargo.toml").is_file());
    crates.sort();
    assert!(crates.len() > 10, "{crates:?}");
    crates
}

fn name(folder: &Path) -> String {
    folder.file_name().expect("a folder has a name").to_string_lossy().into_owned()
}

/// Returns every Rust file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the sets of files that need each other, as paths below `src`.
fn cycles(of: &Crate) -> Vec<Vec<String>> {
    cycles_of(of, |file| file)
}

/// Returns the sets of folders directly below `src` that need each other, and of files beside them.
fn cycles_of_folders(of: &Crate) -> Vec<Vec<String>> {
    cycles_of(of, |file| file.split('/').next().expect("a path").to_owned())
}

/// Returns the sets of what files are parts of (`part`) that need each other.
fn cycles_of(of: &Crate, part: impl Fn(String) -> String) -> Vec<Vec<String>> {
    let needs: Vec<(String, String)> = names::needs(of)
        .into_keys()
        .map(|(from, to)| (part(of.file_name(from)), part(of.file_name(to))))
        .collect();
    let parts: BTreeSet<&String> = needs.iter().flat_map(|(from, to)| [from, to]).collect();
    let parts: Vec<&String> = parts.into_iter().collect();
    let index = |part: &String| parts.binary_search(&part).expect("a part");
    let mut graph = DiGraphMap::<usize, ()>::new();
    for (from, to) in &needs {
        graph.add_edge(index(from), index(to), ());
    }
    let mut cycles: Vec<Vec<String>> = tarjan_scc(&graph)
        .into_iter()
        .filter(|cycle| cycle.len() > 1)
        .map(|mut cycle| {
            cycle.sort_unstable();
            cycle.into_iter().map(|of| parts[of].clone()).collect()
        })
        .collect();
    cycles.sort();
    cycles
}

/// Lists what the files of a cycle need of each other, one line for each pair.
fn within(of: &Crate, cycle: &[String]) -> String {
    let mut text = String::new();
    for ((from, to), items) in names::needs(of) {
        let (from, to) = (of.file_name(from), of.file_name(to));
        if cycle.contains(&from) && cycle.contains(&to) {
            let items: Vec<String> = items.into_iter().collect();
            text += &format!("  {from} needs {} of {to}\n", items.join(", "));
        }
    }
    text
}

/// Compares what exceeds a limit with the known exceptions. Returns an error with the new ones, or with
/// the exceptions that are no longer needed.
fn compare(over: &BTreeSet<String>, known: &[&str]) -> Result<(), String> {
    let known: BTreeSet<String> = known.iter().map(ToString::to_string).collect();
    let new: Vec<&String> = over.difference(&known).collect();
    let gone: Vec<&String> = known.difference(over).collect();
    match (new.is_empty(), gone.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("new: {new:?}")),
        (true, false) => Err(format!("take these off the list of exceptions: {gone:?}")),
    }
}

#[test]
fn no_folder_has_more_than_15_files() {
    let root = workspace();
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    for file in crates().iter().flat_map(|folder| sources(&folder.join("src"))) {
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        let folder = file.parent().and_then(|folder| folder.strip_prefix(&root).ok());
        let folder = folder.expect("below the checkout").display().to_string();
        let is_counted = !["lib.rs", "main.rs", "mod.rs", "tests.rs"].contains(&name.as_str());
        *files.entry(folder).or_default() += usize::from(is_counted);
    }
    assert!(files.len() > 50, "{files:?}");
    let over = files.into_iter().filter(|(_, files)| *files > MOST_FILES).map(|(name, _)| name);
    compare(&over.collect(), FULL_FOLDERS).unwrap_or_else(|what| panic!("over 15 files: {what}"));
}

#[test]
fn no_files_of_a_crate_need_each_other() {
    let mut all = String::new();
    let mut edges = 0;
    for folder in crates() {
        let read = Crate::read(&folder);
        edges += names::needs(&read).len();
        for cycle in cycles(&read) {
            all += &format!("{}: {}\n", name(&folder), cycle.join(", "));
            all += &within(&read, &cycle);
        }
    }
    assert!(edges > 500, "only {edges} paths between files were found");
    assert!(all.is_empty(), "cycles:\n{all}");
}

#[test]
fn no_folders_of_a_crate_need_each_other() {
    let mut tangled = BTreeSet::new();
    for folder in crates() {
        for cycle in cycles_of_folders(&Crate::read(&folder)) {
            println!("{}: {}", name(&folder), cycle.join(", "));
            tangled.insert(name(&folder));
        }
    }
    compare(&tangled, TANGLED_CRATES).unwrap_or_else(|what| panic!("cycles of folders: {what}"));
}

#[test]
fn a_cycle_of_folders_without_one_of_files_is_found() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "pub mod c; pub mod d;"),
        ("a/c.rs", "pub struct C;"),
        ("a/d.rs", "pub struct D(crate::b::e::E);"),
        ("b/mod.rs", "pub mod e;"),
        ("b/e.rs", "pub struct E(crate::a::c::C);"),
    ];
    let (_folder, tangled) = crate_of(&files);
    assert_eq!(cycles(&tangled), Vec::<Vec<String>>::new());
    assert_eq!(cycles_of_folders(&tangled), [["a", "b"]]);
}

/// Writes a crate with these files, and reads it.
fn crate_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Crate) {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join("src").join(path);
        fs::create_dir_all(path.parent().expect("src")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let read = Crate::read(folder.path());
    (folder, read)
}

#[test]
fn two_files_that_need_each_other_are_found_through_a_re_export() {
    let (_folder, tangled) = crate_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "pub struct A; fn f() { crate::b::g() }"),
        ("b.rs", "pub fn g() { let _: Option<super::A> = None; }"),
    ]);
    assert_eq!(cycles(&tangled), [["a.rs", "b.rs"]]);
    let needs = within(&tangled, &cycles(&tangled)[0]);
    assert_eq!(needs, "  a.rs needs g of b.rs\n  b.rs needs A of a.rs\n");
}

#[test]
fn a_parent_that_declares_and_re_exports_needs_nothing() {
    let (_folder, clean) = crate_of(&[
        ("lib.rs", "mod a; pub use a::{A, b::*};"),
        ("a/mod.rs", "pub mod b; pub(crate) use b::B; pub struct A;"),
        ("a/b.rs", "use super::A; use crate::A as Same; pub struct B(A, Same);"),
    ]);
    assert_eq!(cycles(&clean), Vec::<Vec<String>>::new());
    let (_folder, tangled) = crate_of(&[
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; use b::B; pub struct A(B);"),
        ("a/b.rs", "use super::A; pub struct B(Box<A>);"),
    ]);
    assert_eq!(cycles(&tangled), [["a/b.rs", "a/mod.rs"]]);
}

#[test]
fn paths_in_macro_tokens_count_and_tests_do_not() {
    let (_folder, tangled) = crate_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub const A: u8 = 1; fn f() -> String { format!(\"{}\", crate::b::B) }"),
        ("b.rs", "pub const B: u8 = super::a::A;"),
    ]);
    assert_eq!(cycles(&tangled), [["a.rs", "b.rs"]]);
    let (_folder, clean) = crate_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub const A: u8 = 1; #[cfg(test)] mod tests { use crate::b::B; }"),
        ("b.rs", "pub const B: u8 = super::a::A; #[cfg(test)] mod tests;"),
        ("b/tests.rs", "use super::B; fn f() { crate::a::A; }"),
    ]);
    assert_eq!(cycles(&clean), Vec::<Vec<String>>::new());
    assert_eq!(clean.files().len(), 3, "a file of tests was counted");
}

#[test]
fn an_indirect_cycle_is_found() {
    let (_folder, tangled) = crate_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d { pub(crate) use crate::c::C; }"),
        ("a.rs", "use crate::b; fn f() { b::g(); } pub trait A { fn a(&self) {} }"),
        ("b.rs", "use crate::d; pub fn g() { d::C; }"),
        ("c.rs", "pub struct C; impl crate::a::A for C {}"),
    ]);
    assert_eq!(cycles(&tangled), [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn exceptions_that_are_no_longer_needed_are_an_error() {
    let over: BTreeSet<String> = ["a".to_owned()].into();
    assert!(compare(&over, &["a"]).is_ok());
    assert!(compare(&over, &[]).unwrap_err().starts_with("new"));
    assert!(compare(&over, &["a", "b"]).unwrap_err().contains("take these off"));
}
