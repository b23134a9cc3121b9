//! The hub under storms, under Autobahn, and beside a cheat.

mod autobahn;
mod cheat;
mod storm;
