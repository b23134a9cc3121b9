//! Coroutines: their lifecycle, mailboxes, sockets, blocked threads, and overflows of the stack.

mod common;
mod coroutines;
mod mailbox;
mod net;
mod overflow;
mod stall;
