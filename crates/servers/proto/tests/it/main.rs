//! HTTP/1.1 as transcripts: bytes in, bytes out, however they are split. It allocates nothing on the way.

mod accepted;
mod allocations;
mod client;
mod cuts;
mod malformed;
mod oracle;
mod served;
