//! The structure of the source: at most 15 files in a folder, whose front page is its `mod.rs`; no cycle of files
//! of a crate that need each other, and none of its folders. `protocols` and `words` check where protocols are named,
//! and which phrases occur. Clippy limits the lines of functions.
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

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// Returns the folders of the workspace's crates: those in `crates/`, and in its groups.
fn crates() -> Vec<PathBuf> {
    let is_crate = |folder: &PathBuf| folder.join("Cargo.toml").is_file();
    let (mut crates, groups): (Vec<_>, Vec<_>) =
        folders(&workspace().join("crates")).into_iter().partition(is_crate);
    crates.extend(groups.iter().flat_map(|group| folders(group)).filter(is_crate));
    crates.sort();
    assert!(crates.len() > 10, "{crates:?}");
    crates
}

/// Returns the folders in a folder.
fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).expect("a folder of crates");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_dir()).collect()
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

/// Pairs of files of a crate, as paths below `src`, where the first needs items that the second defines.
type Needs = BTreeMap<(String, String), BTreeSet<String>>;

fn needs(of: &Crate) -> Needs {
    let named = |((from, to), items)| ((of.file_name(from), of.file_name(to)), items);
    names::needs(of).into_iter().map(named).collect()
}

fn file(path: &str) -> &str {
    path
}

/// The folder directly below `src`, or the file if it is in none.
fn folder(path: &str) -> &str {
    path.split('/').next().expect("a path")
}

/// Returns the sets of what files are parts of (`part`) that need each other.
fn cycles(needs: &Needs, part: impl Fn(&str) -> &str) -> Vec<Vec<&str>> {
    let graph: DiGraphMap<&str, ()> =
        needs.keys().map(|(from, to)| (part(from), part(to), ())).collect();
    let mut cycles = tarjan_scc(&graph);
    cycles.retain(|cycle| cycle.len() > 1);
    cycles.iter_mut().for_each(|cycle| cycle.sort_unstable());
    cycles.sort();
    cycles
}

/// Lists what the parts of a cycle need of each other, one line for each pair of files.
fn within(needs: &Needs, cycle: &[&str], part: impl Fn(&str) -> &str) -> String {
    let mut text = String::new();
    for ((from, to), items) in needs {
        let (a, b) = (part(from), part(to));
        if a != b && cycle.contains(&a) && cycle.contains(&b) {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            text += &format!("  {from} needs {} of {to}\n", items.join(", "));
        }
    }
    text
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
    assert_eq!(over.collect::<Vec<_>>(), Vec::<String>::new(), "over 15 files");
}

#[test]
fn the_front_page_of_a_folder_is_inside() {
    for file in crates().iter().flat_map(|folder| sources(&folder.join("src"))) {
        let folder = file.with_extension("");
        let is_for_tests = |path: &PathBuf| path.starts_with(folder.join("tests"));
        let only_tests =
            || sources(&folder).iter().all(|path| is_for_tests(&path.with_extension("")));
        assert!(
            !folder.is_dir() || only_tests(),
            "{} belongs into {}/mod.rs",
            file.display(),
            folder.display()
        );
    }
}

/// rustdoc reads a crate for seconds to find that it has no example, so only crates that have one are looked at.
#[test]
fn examples_in_documentation_are_tested_where_there_are_any() {
    for of in crates().iter().filter(|folder| folder.join("src/lib.rs").is_file()) {
        let text = |path: &PathBuf| fs::read_to_string(path).expect("a source");
        let has_example = sources(&of.join("src")).iter().map(text).any(|text| {
            let comments = text.lines().map(str::trim_start).filter(|line| line.starts_with("//"));
            let texts = comments.map(|line| line.trim_start_matches(['/', '!']).trim());
            // Every second fence ends a block.
            let mut fences = texts.filter(|line| line.starts_with("```")).step_by(2);
            fences.any(|fence| ["```", "```rust", "```should_panic"].contains(&fence))
        });
        let manifest = text(&of.join("Cargo.toml"));
        assert_eq!(has_example, !manifest.contains("doctest = false"), "{}", of.display());
    }
}

#[test]
fn no_files_and_no_folders_of_a_crate_need_each_other() {
    let mut all = String::new();
    let mut edges = 0;
    for of in crates() {
        let needs = needs(&Crate::read(&of));
        edges += needs.len();
        for part in [file, folder] {
            for cycle in cycles(&needs, part) {
                all += &format!("{}: {}\n", name(&of), cycle.join(", "));
                all += &within(&needs, &cycle, part);
            }
        }
    }
    assert!(edges > 500, "only {edges} paths between files were found");
    assert!(all.is_empty(), "cycles:\n{all}");
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
    let tangled = needs_of(&files);
    assert_eq!(cycles(&tangled, file), Vec::<Vec<&str>>::new());
    assert_eq!(cycles(&tangled, folder), [["a", "b"]]);
    let needs = "  a/d.rs needs E of b/e.rs\n  b/e.rs needs C of a/c.rs\n";
    assert_eq!(within(&tangled, &["a", "b"], folder), needs);
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

fn needs_of(files: &[(&str, &str)]) -> Needs {
    needs(&crate_of(files).1)
}

#[test]
fn two_files_that_need_each_other_are_found_through_a_re_export() {
    let tangled = needs_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "pub struct A; fn f() { crate::b::g() }"),
        ("b.rs", "pub fn g() { let _: Option<super::A> = None; }"),
    ]);
    assert_eq!(cycles(&tangled, file), [["a.rs", "b.rs"]]);
    let needs = within(&tangled, &["a.rs", "b.rs"], file);
    assert_eq!(needs, "  a.rs needs g of b.rs\n  b.rs needs A of a.rs\n");
}

#[test]
fn a_parent_that_declares_and_re_exports_needs_nothing() {
    let clean = needs_of(&[
        ("lib.rs", "mod a; pub use a::{A, b::*};"),
        ("a/mod.rs", "pub mod b; pub(crate) use b::B; pub struct A;"),
        ("a/b.rs", "use super::A; use crate::A as Same; pub struct B(A, Same);"),
    ]);
    assert_eq!(cycles(&clean, file), Vec::<Vec<&str>>::new());
    let tangled = needs_of(&[
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; use b::B; pub struct A(B);"),
        ("a/b.rs", "use super::A; pub struct B(Box<A>);"),
    ]);
    assert_eq!(cycles(&tangled, file), [["a/b.rs", "a/mod.rs"]]);
}

#[test]
fn paths_in_macro_tokens_count_and_tests_do_not() {
    let tangled = needs_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub const A: u8 = 1; fn f() -> String { format!(\"{}\", crate::b::B) }"),
        ("b.rs", "pub const B: u8 = super::a::A;"),
    ]);
    assert_eq!(cycles(&tangled, file), [["a.rs", "b.rs"]]);
    let (_folder, clean) = crate_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub const A: u8 = 1; #[cfg(test)] mod tests { use crate::b::B; }"),
        ("b.rs", "pub const B: u8 = super::a::A; #[cfg(test)] mod tests;"),
        ("b/tests.rs", "use super::B; fn f() { crate::a::A; }"),
    ]);
    assert_eq!(cycles(&needs(&clean), file), Vec::<Vec<&str>>::new());
    assert_eq!(clean.files().len(), 3, "a file of tests was counted");
}

#[test]
fn an_indirect_cycle_is_found() {
    let tangled = needs_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d { pub(crate) use crate::c::C; }"),
        ("a.rs", "use crate::b; fn f() { b::g(); } pub trait A { fn a(&self) {} }"),
        ("b.rs", "use crate::d; pub fn g() { d::C; }"),
        ("c.rs", "pub struct C; impl crate::a::A for C {}"),
    ]);
    assert_eq!(cycles(&tangled, file), [["a.rs", "b.rs", "c.rs"]]);
}
