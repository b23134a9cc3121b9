//! What a client sees of a program does not depend on its style: the same tests run over all of them.

mod closing;
mod deferred;
mod http;
mod lines;
mod members;
mod play;
mod silence;
