//! Tests that need a program which may be missing: a build script looks for it, so that the test is reported
//! as ignored, with the reason, instead of passing without having run.
//!
//! In `build.rs`: `regatta_testkit::prerequisite::programs(&["redis-server"])`. At the test:
//! `#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]`.

use std::{env, path::Path};

/// For build scripts: sets `has_NAME` for each of these programs that a folder of `PATH` contains, with
/// `_` for characters that a name cannot have. Cargo runs the script again when `PATH` changes or when one of
/// its folders does, so an installed program is noticed.
pub fn programs(names: &[&str]) {
    println!("cargo::rerun-if-env-changed=PATH");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).filter(|folder| folder.is_dir()).collect();
    for folder in &folders {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    for name in names {
        set(name, folders.iter().any(|folder| folder.join(name).is_file()));
    }
}

/// For build scripts: sets `has_NAME` if `path` exists. Cargo runs the script again when it appears.
pub fn path(name: &str, path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
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
