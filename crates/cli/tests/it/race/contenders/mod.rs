//! Contenders that behave badly, that run already, or that have processes besides their server.

mod answers;
mod backends;
mod calls;
mod container;
mod handed_over;
mod lies;
mod members;
mod nodes;
mod pilots;
mod processes;
mod running;
mod starts;
mod streams;
