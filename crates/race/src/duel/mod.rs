//! Duels: the contenders of a heat are alive together, and the load drives one of them at a time, in short
//! slices, while the others are frozen. So contenders that are compared run within milliseconds of each
//! other, and what the machine does to one it does to all.
//!
//! *Heat*: contenders that are alive at the same time on the same CPUs. *Life*: one start of a heat. *Block*:
//! one slice of each contender, in an order from a balanced design. *Slice*: the load drives one contender
//! and waits for every reply; its CPU time is read before and after, while it is frozen.
//!
//! - [`order`] (pure): balanced orders of the contenders of a block.
//! - [`heats`] (pure): which contenders are alive together.
//! - [`shape`] (pure): heats, loads that share a life, and lengths of slices, as they follow from a race.
//! - [`life`] (pure): what happens in a life, one step after the other, on any [`life::Bench`].
//! - [`bench`]: the bench of this machine: processes, connections, freezers, clocks.
//!
//! Relatives: duet benchmarking (Bulej et al., ICPE 2020), randomized multiple interleaved trials (Abedi and
//! Brecht, ICPE 2017).

mod bench;
mod heats;
mod life;
mod order;
mod race;
mod roles;
mod shape;
mod warm_up;

pub(crate) use race::{Duels, Starts};
pub(crate) use shape::{groups, heats_of, is_raced_in_duels, slice};
