//! Bundled races and peers, and result directories of this and of earlier versions.

mod directory;
mod old_results;
mod peers;
mod races;
#[allow(dead_code, reason = "this crate uses a part of the simulation")]
#[path = "../../../judge/tests/simulated/mod.rs"]
mod simulated;
