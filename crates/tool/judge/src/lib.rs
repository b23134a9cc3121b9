//! The referee: turns a plan and its recorded rounds into the judged summary.
//!
//! Pure: it reads no file, clock or machine, so every figure of a report can be recomputed from a
//! result directory.
//!
//! # Where things are
//!
//! - `cell`: what the rounds of one contender at one load say.
//! - `verdict`: what that is worth.
//! - `compared`: all contenders at one load, and how they compare.
//! - `duel`: the statistics of slices, blocks and lives.
//! - `statistics`: those of rounds, and what both share.
//! - `whole`: the judgement on a race or on two results, its gate, and when it is over (`whole::stopping_rule`).
//! - `doubts`: why to distrust the race as a whole.
//! - `curves`: loads that differ in one number.
//! - `settling`: whether a contender is warm.
//! - `one_load`: a load without a race; `capacity`: the levels of a search.

pub mod capacity;
mod cell;
mod compared;
mod curves;
mod doubts;
pub mod duel;
mod one_load;
mod parallel;
mod settling;
pub mod statistics;
mod verdict;
mod whole;

pub use compared::field::TIE_MARGIN;
pub use one_load::{
    fault::{LoadFaults, of_replies},
    of_load::of_load,
    single::{Limited, ObservedServer, SingleLoad},
};
pub use settling::{Settler, agreed, less_changed};
pub use verdict::{BUSY, HELD, Used};
pub use whole::{
    diff::{NothingInCommon, Side, diff},
    judgement::judge,
    stopping_rule::{
        BLOCKS_OF_A_LIFE, Due, LEAST_LIVES, LEAST_PASSES, MOST_PASSES, blocks_of_next_life, due,
    },
};
