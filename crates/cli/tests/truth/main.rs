//! Is the referee right? Races and loads of servers of which it is known what must come out, run by
//! the program as it is built, one after the other.
//!
//! In its short form, which every run of the tests includes, each test shows that the thing works:
//! with few rounds, and with differences so coarse that no machine can hide them. The full form is
//! the statistical acceptance: it takes more than an hour of a quiet machine, prints what it found with
//! the widths of all intervals, and asserts bounds at which correct software passes.
//!
//! ```sh
//! cargo build --release -p regatta-cli --examples
//! REGATTA_TRUTH=full cargo test --release -p regatta-cli --test truth -- --nocapture
//! ```
//!
//! Planted lies have a full form of their own, `scripts/acceptance lies`.
//!
//! All seeds are fixed here. They were fixed before any result was looked at.

mod copies;
mod delays;
mod gate;
mod handicap;
mod lies;
mod limits;
mod long_runs;
mod many_threads;
mod precision;
mod raced;
mod rates;
mod stage;
#[path = "../support/mod.rs"]
mod support;
