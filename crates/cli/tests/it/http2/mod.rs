//! `serve hello --http2` and `serve hash --http2`, on every model: independently written clients, the load
//! with every reply checked, and what ends connections.

mod curl;
mod drain;
mod load;
mod order;
mod refusals;
