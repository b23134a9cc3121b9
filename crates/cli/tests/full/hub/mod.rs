//! The hub under storms and floods, under Autobahn, beside a cheat, on several nodes whose broker fails, and in a rolling
//! restart.

mod autobahn;
mod cheat;
mod flood;
mod nodes;
mod rolling;
mod storm;
