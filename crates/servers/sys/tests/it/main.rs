//! System calls: rings, waits, and the signal that ends the input of a connection.

mod signal;
mod uring;
mod uring_files;
mod waits;
