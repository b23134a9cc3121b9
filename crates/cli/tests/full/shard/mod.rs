//! The proxy while its nodes are killed, and beside a client that does not read; every command in detail.

mod beside;
mod differential;
mod killed;
