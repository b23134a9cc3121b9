//! A client sees the same from a program in every style: the same tests run over all of them.

mod callback;
mod client;
mod closing;
mod deferred;
mod http;
mod lines;
mod members;
mod peer;
mod play;
mod played;
mod silence;
