//! The text protocol of memcached: items are stored under keys and read back. See its `protocol.txt`.
//!
//! This folder is the example of how a protocol is added; ARCHITECTURE.md goes through it.
//!
//! A reply is known to the byte where the workload says what is stored under a key, and then it is
//! compared as memory ([`crate::Exact`]). A `get` of which nothing is said may be answered with any
//! value of its key or with none: such replies are read (`reply`).

mod asks;
mod built_in;
mod file;
mod receive;
mod reply;
mod step;

pub use asks::MemcachedAsks;
pub use receive::Memcached;

use crate::{
    protocol::{Protocol, Row, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct MemcachedText;

impl Protocol for MemcachedText {
    type Asks = MemcachedAsks;

    const ROW: Row = Row {
        name: "memcached",
        schemes: &[Scheme { name: "memcached", port: Some(11_211), tls: false }],
        alpn: None,
        url: "memcached://HOST[:PORT]",
        paths: false,
        adapters: &[],
        knock: None,
    };

    fn built_in() -> Vec<MemcachedAsks> {
        vec![MemcachedAsks::Cache]
    }

    fn usual(_: Option<&str>) -> MemcachedAsks {
        MemcachedAsks::Cache
    }

    fn read(file: FileText<'_>) -> Result<MemcachedAsks, String> {
        MemcachedAsks::read(file)
    }
}
