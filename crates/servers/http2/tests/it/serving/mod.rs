//! The server end.

mod allocations;
mod client;
mod flow;
mod malformed;
mod oracle;
mod requests;
mod run;
mod splits;
