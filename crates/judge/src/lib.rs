//! The referee: turns a plan and its recorded rounds into the judged summary.
//!
//! Pure: it reads no file, clock or machine, so every figure of a report can be recomputed from a
//! result directory. `observed` reads the rounds of one cell, `verdict` judges the cell, `scaling`
//! compares loads that differ in cores alone, `latency_ratios` compares latencies, `curves` reads
//! loads that differ in one number as a curve, `doubts` checks the race as a whole, and `race`
//! compares the costs of the cells of a load. `of_load` judges a load without a race, `capacity`
//! the levels of a search.

pub mod capacity;
mod comparison;
mod curves;
mod diff;
mod doubts;
pub mod duel;
mod fault;
mod field;
mod gate;
mod heats;
mod latency;
mod latency_ratios;
mod little;
mod lives;
mod observed;
mod of_load;
mod operations;
mod parallel;
mod precision;
mod race;
mod roles;
mod scaling;
mod settling;
mod signals;
mod single;
pub mod statistics;
mod took;
mod verdict;

pub use diff::{NothingInCommon, Side, diff};
pub use fault::{Replies, of_replies};
pub use field::TIE_MARGIN;
pub use of_load::of_load;
pub use precision::{
    BLOCKS_OF_A_LIFE, Due, LEAST_LIVES, LEAST_PASSES, MOST_PASSES, blocks_of_next_life, due,
};
pub use race::judge;
pub use settling::{Settler, agreed, less_changed};
pub use single::{Limited, ObservedServer, SingleLoad};
pub use verdict::{BUSY, HELD, Used};
