//! However the bytes are cut, every style of every program answers the same.

mod deferred;
mod http;
mod lines;
mod play;
