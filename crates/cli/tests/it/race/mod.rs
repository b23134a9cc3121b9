//! `regatta race` with contenders that behave badly, and when it is killed, interrupted or called with
//! invalid arguments; its loads, output, events and result directories, replays, and gates.

mod asked;
mod contenders;
mod on_server;
mod shown;
mod stopped;
