//! What is counted: requests, errors, operations and latencies, all of which merge without loss.

pub(crate) mod across;
pub(crate) mod arrivals;
pub(crate) mod counted;
pub(crate) mod counts;
pub(crate) mod errors;
pub(crate) mod hdr;
pub(crate) mod latency;
pub(crate) mod losses;
pub(crate) mod operation;
pub(crate) mod second;
