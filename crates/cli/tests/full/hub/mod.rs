//! The hub under storms and floods, under Autobahn, and beside a cheat.

mod autobahn;
mod cheat;
mod flood;
mod storm;
