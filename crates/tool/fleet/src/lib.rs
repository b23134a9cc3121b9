//! A load from several machines: agents, which run load processes there, and the leader that commands them.

pub mod clock;
