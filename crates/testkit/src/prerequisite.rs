//! Tests that need a program which may be missing: a build script looks for it, so that the test is reported
//! as ignored, with the reason, instead of passing without having run.
//!
//! In `build.rs`: `regatta_testkit::prerequisite::programs(&["redis-server"])`. At the test:
//! `#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]`.

use std::{
    env,
    path::{Path, PathBuf},
};

/// For build scripts: sets `has_NAME` for each of these programs that [`find`] finds, with `_` for characters
/// that a name cannot have. Cargo runs the script again when `PATH` changes, when a found program changes, and,
/// while one is missing, when a folder of `PATH` changes. So an installed program is noticed.
pub fn programs(names: &[&str]) {
    println!("cargo::rerun-if-env-changed=PATH");
    let found = names.iter().map(|name| (name, find(name))).collect::<Vec<_>>();
    for (name, program) in &found {
        if let Some(program) = program {
            println!("cargo::rerun-if-changed={}", program.display());
        }
        set(name, program.is_some());
    }
    if found.iter().any(|(_, program)| program.is_none()) {
        for folder in folders().filter(|folder| folder.is_dir()) {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
    }
}

/// Finds a program in `PATH`, or in `/usr/sbin`, where Debian installs servers and which is not in the `PATH` of
/// ordinary users.
pub fn find(name: &str) -> Option<PathBuf> {
    folders().map(|folder| folder.join(name)).find(|program| program.is_file())
}

fn folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    folders.into_iter().chain([PathBuf::from("/usr/sbin")])
}

/// For build scripts: sets `has_NAME` if `path` exists. Cargo runs the script again when it appears: while it is
/// missing, when anything in the nearest folder above it changes.
pub fn path(name: &str, path: &Path) {
    // Cargo would run the script each time if a watched path did not exist.
    let watched = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    println!("cargo::rerun-if-changed={}", watched.display());
    set(name, path.exists());
}

/// For build scripts: declares `has_NAME`, and sets it if `is_there`.
pub fn set(name: &str, is_there: bool) {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    println!("cargo::rustc-check-cfg=cfg(has_{name})");
    if is_there {
        println!("cargo::rustc-cfg=has_{name}");
    }
}
