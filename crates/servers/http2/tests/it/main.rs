//! HTTP/2 as transcripts: bytes in, events and bytes out, however they are split. Other implementations
//! are oracles.

mod allocations;
mod appendix_c;
mod cases;
mod flow;
mod going_away;
mod malformed;
mod oracle;
mod parts;
mod responses;
mod run;
mod server;
mod serving;
mod splits;
