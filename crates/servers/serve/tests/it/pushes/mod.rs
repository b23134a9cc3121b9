//! A small service whose sessions push to each other, over real sockets, on every model that can run
//! it except `cluster`, which cannot fork a process with several threads.

mod chat;
mod ends;
mod idle;
mod order;
mod refusals;
mod server;
mod slow;
mod stops;
mod ticks;
mod unread;
mod upgrade;
