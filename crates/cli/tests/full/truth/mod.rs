//! Is the referee right? Races and loads of servers with known results, run by the built program, one at
//! a time.
//!
//! The statistical acceptance. It takes more than an hour on a quiet machine, prints its results with the widths
//! of all intervals, and asserts bounds that correct software meets.
//!
//! ```sh
//! cargo build --release -p regatta-cli --examples
//! cargo test --release -p regatta-cli --test full truth -- --nocapture
//! ```
//!
//! `scripts/acceptance lies` repeats the races of planted lies.
//!
//! All seeds are fixed, and were chosen before any result was seen. Only the races of `lies` and
//! `many_threads` have another seed in each run.

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
