//! The I/O models, one module each. `reactor` is what `select`, `poll`, `epoll`, `percore` and `cluster` share.

pub(crate) mod asynchronous;
pub(crate) mod cluster;
pub(crate) mod epoll;
pub(crate) mod fork;
pub(crate) mod green;
pub(crate) mod percore;
pub(crate) mod poll;
pub(crate) mod prefork;
pub(crate) mod reactor;
pub(crate) mod select;
pub(crate) mod threads;
pub(crate) mod uring;
