//! The text protocol of memcached, which stores items under keys and reads them back. See its
//! `protocol.txt`.
//!
//! This folder is the example of how to add a protocol; docs/internals/load.md walks through it.
//!
//! A reply is known to the byte if the workload determines the value of its key. It is then compared as
//! memory ([`crate::Exact`]). A `get` without an expectation may return any value of its key, or none.
//! Such replies are parsed (`reply`).

mod asks;
mod built_in;
mod file;
mod receive;
mod reply;
mod step;

pub use asks::MemcachedAsks;
pub use receive::Memcached;

use crate::{
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct MemcachedText;

impl Protocol for MemcachedText {
    type Asks = MemcachedAsks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "memcached",
        schemes: &[Scheme { name: "memcached", port: Some(11_211), tls: false }],
        alpn: None,
        url: "memcached://HOST[:PORT]",
        paths: false,
        adapters: &[],
        readiness_probe: None,
        greeting: Greeting {
            named: "memcached",
            sends: |_| "commands of memcached",
            remedy: "`--workload cache`",
            asks: |_, _| b"version\r\n".to_vec(),
            is_spoken: |answer| answer.starts_with(b"VERSION "),
        },
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
