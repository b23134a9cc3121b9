//! The proxy while its nodes are killed, and beside a client that does not read.

mod beside;
mod killed;
