//! Measures the load itself, each test alone on the machine, and members that stay silent for long. Part of
//! `scripts/test --all`; alone: `cargo test -p regatta-load --test full`.

#[path = "../it/common/mod.rs"]
mod common;
mod silent;
mod slow;
mod times;
