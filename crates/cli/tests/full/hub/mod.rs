//! The hub under storms and floods, under Autobahn, beside a cheat, and on several nodes whose broker fails.

mod autobahn;
mod cheat;
mod flood;
mod nodes;
mod storm;
