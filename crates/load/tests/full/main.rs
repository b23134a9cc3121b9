//! Measures the load itself, each test alone on the machine. Part of `scripts/test --all`; alone:
//! `cargo test -p regatta-load --test full`.

#[path = "../it/common/mod.rs"]
mod common;
mod slow;
mod times;
