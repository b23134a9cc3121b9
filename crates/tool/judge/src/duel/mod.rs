//! The statistics of duels: contenders that are alive together and are loaded in short slices, one
//! after the other.
//!
//! A *life* is one start of all contenders of a heat. A *block* is one slice of each of them. A
//! *state* is a level of the machine: on a shared machine the cost of every server changes by
//! 19–41% every few seconds, and by a different factor for each of them. The levels of inference
//! are those of Kalibera and Jones (*Rigorous benchmarking in reasonable time*, ISMM 2013): lives
//! repeat, so intervals are over lives; blocks only make the figure of a life more precise.
//!
//! 1. [`levels`]: how expensive each block was for everybody; [`busy`]: beside which of them other programs ran.
//! 2. [`states`]: the states of the machine, which of them each block belongs to, and the blocks that are
//!    left out.
//! 3. [`disturbed`]: the slices that are left out.
//! 4. [`mixed`]: log-ratio of two contenders ~ state + life.
//! 5. [`moderation`]: the variances between lives, moderated over the contenders.
//! 6. [`interval`]: intervals and p-values that are valid however often one looks before the end of a race,
//!    and narrower ones at its end.
//! 7. [`analysis`] puts these together; [`ratio`] applies 4 to 6 to a pair: its estimate and its interval;
//!    [`needed_lives`] says how much to measure.
//!
//! # What is never removed
//!
//! Means are plain: nothing is trimmed, winsorised or down-weighted. A cost that only one contender
//! has (a collection in every tenth slice, a second mode, one bad start in ten) is its own, and from
//! its slices alone it cannot be distinguished from a short disturbance. Trimming would hide the one to be
//! rid of the other. A disturbance hits all contenders equally often, so it widens intervals and
//! does not move ratios. Blocks are left out only for what several contenders show at once, and slices
//! only for what others show right before and after them: see [`states`] and [`disturbed`].
//!
//! Logarithms are natural. Means are geometric, as everywhere in the referee.

mod analysis;
mod busy;
mod clusters;
mod disturbed;
mod field;
mod interval;
mod levels;
mod long_slices;
mod mixed;
mod moderation;
mod needed_lives;
mod ratio;
mod states;
mod sweep;

pub use analysis::{Analysis, Estimates};
pub use field::{Block, Field, Life, Look};
pub use long_slices::LongSlices;
pub use needed_lives::{blocks_per_life, lives_needed};
pub use ratio::{Ratio, StateRatio};
pub use states::State;
