//! HTTP/1.1: requests with a method, a target and fields; replies are checked by their status, fields
//! and content.
//!
//! The last correct reply of each kind of request that arrived in one piece is remembered (`reply::memo`), and
//! received bytes are compared with it as memory. If only the content differs, the content is checked.
//! Otherwise the codec parses the reply (`partial_reply`), and it is checked in full (`check`).

mod asks;
mod built_in;
mod file;
mod heads;
mod probe;
pub(in crate::dialects) mod reply;
pub(in crate::dialects) mod requests;
pub mod rules;
mod slow;

pub use asks::HttpAsks;
pub use regatta_proto::http1::Method;
pub use reply::expected::{Content, Expected, Field, Is, Member, Status, Value};
pub use reply::receive::Http;
pub use requests::{HttpRequest, HttpWorkload};
pub use slow::{SlowPart, slow_request};

use crate::{
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Scheme},
    workload::file::FileText,
};
use regatta_record::Heads;

/// The protocol.
#[derive(Debug)]
pub struct Http1;

impl Protocol for Http1 {
    type Asks = HttpAsks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "http",
        schemes: &[
            Scheme { name: "http", port: Some(80), tls: false },
            Scheme { name: "https", port: Some(443), tls: true },
        ],
        alpn: Some("http/1.1"),
        url: "http(s)://HOST[:PORT]/PATH",
        paths: true,
        adapters: &[],
        readiness_probe: Some(probe::readiness_probe),
        greeting: Greeting {
            named: "HTTP",
            sends: |_| "HTTP requests",
            remedy: "`--http /PATH`, or the race `hello`",
            asks: |host, path| probe::readiness_probe(path.unwrap_or("/"), host).asks,
            is_spoken: |answer| answer.starts_with(b"HTTP/1."),
        },
    };

    fn built_in() -> Vec<HttpAsks> {
        let heads = Heads::Varied;
        vec![HttpAsks::Hello { heads }, HttpAsks::Hash { n: 1, heads }]
    }

    fn usual(path: Option<&str>) -> HttpAsks {
        HttpWorkload::get(path.unwrap_or("/")).into()
    }

    fn read(file: FileText<'_>) -> Result<HttpAsks, String> {
        HttpAsks::read(file)
    }
}
