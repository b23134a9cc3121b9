//! What is measured of a request: its keys, and how long it takes.

mod hot;
mod replied;
