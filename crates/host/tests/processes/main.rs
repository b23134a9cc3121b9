//! Contenders of every kind of misbehaviour, each under every containment that this machine has:
//! what is told of them, and that nothing of them is left.

mod common;
mod killed;
mod start;
mod stop;
mod usage;
