//! Duels: the contenders of a heat are alive together, and the load drives one of them at a time, in short
//! slices, while the others are frozen. So contenders that are compared run within milliseconds of each
//! other, and what the machine does to one it does to all.
//!
//! *Heat*: contenders that are alive at the same time on the same CPUs. *Life*: one start of a heat. *Block*:
//! one slice of each contender, in an order from a balanced design. *Slice*: the load drives one contender
//! and waits for every reply; its CPU time is read before and after, while it is frozen.
//!
//! - [`order`] (pure): balanced orders of the contenders of a block.
//! - [`life`] (pure): what happens in a life, one step after the other, on any [`life::Bench`].
//! - [`runner`]: a life from outside: what it needs and what it yields.
//! - [`bench`]: the bench of this machine: processes, connections, freezers, clocks.
//! - [`death_watch`]: reports a contender that dies in the middle of a life.
//!
//! Which loads are raced in duels, who is in which heat, and how long a slice is follow from the race alone:
//! [`ask::duels`](crate::ask::duels).
//!
//! Relatives: duet benchmarking (Bulej et al., ICPE 2020), randomized multiple interleaved trials (Abedi and
//! Brecht, ICPE 2017).

mod bench;
mod death_watch;
mod life;
mod order;
mod passes;
mod roles;
mod runner;
mod warm_up;

pub(crate) use bench::LivesHere;
pub(crate) use passes::{Duels, Starts};
pub(crate) use runner::RunsLives;
#[cfg(test)]
pub(crate) use {
    life::WarmUp,
    runner::{Life, Lived},
};
