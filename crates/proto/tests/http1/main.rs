//! HTTP/1.1 as transcripts: bytes in, bytes out, however they are split.

mod accepted;
mod cases;
mod client;
mod cuts;
mod malformed;
mod oracle;
mod served;
