//! Contenders that behave well or misbehave, most of them with every containment available on this
//! machine. The tests check the reports, and that no process is left.

mod common;
mod container;
mod killed;
mod start;
mod stop;
mod usage;
