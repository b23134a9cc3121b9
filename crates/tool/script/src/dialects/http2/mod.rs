//! HTTP/2: the requests and expected replies of HTTP workloads, as streams of a connection.
//!
//! `asks` adopts a workload of HTTP, and `requests` compiles its requests into field blocks. A connection
//! (`talk`) has the client end of the crate `http2`, which checks frames and flow control; `places` keeps
//! which request is on which stream. `receive` reads what arrives, `reply` checks a response as HTTP/1.1
//! does, and `dialect` is what the load sees. `sample` has single requests and replies outside the load.
//! `response` is the interface of such checks: protocols on top of HTTP/2 have their own.

mod asks;
mod dialect;
#[cfg(test)]
pub(in crate::dialects) mod pair;
mod places;
mod receive;
mod reply;
mod requests;
pub(in crate::dialects) mod response;
pub(in crate::dialects) mod sample;
mod talk;
#[cfg(test)]
mod tests;
mod thread_state;

pub use asks::Http2Asks;
pub use dialect::Dialect2;

use crate::{
    dialects::Workload,
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Version},
    workload::file::FileText,
};
use regatta_http2::frame::{Kind, write};

/// The protocol.
#[derive(Debug)]
pub struct Http2;

impl Protocol for Http2 {
    type Asks = Http2Asks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "http2",
        schemes: &[],
        alpn: Some("h2"),
        url: "http(s)://HOST[:PORT]/PATH",
        paths: true,
        adapters: &[],
        readiness_probe: None,
        greeting: Greeting {
            named: "HTTP/2",
            sends: |_| "HTTP/2 requests",
            remedy: "`--http2`",
            asks: |_, _| {
                let mut preface = write::PREFACE.to_vec();
                write::settings(&mut preface, &[]);
                preface
            },
            is_spoken: |answer| answer.get(3) == Some(&Kind::SETTINGS.0),
        },
    };

    const VERSION: Option<Version> =
        Some(Version { protocol: "http2", of: "http", number: 2, named: "HTTP/2" });

    fn built_in() -> Vec<Http2Asks> {
        Vec::new()
    }

    fn usual(path: Option<&str>) -> Http2Asks {
        Http2Asks::usual(path)
    }

    fn read(_: FileText<'_>) -> Result<Http2Asks, String> {
        Err("HTTP/2 is an option of the load: write protocol = \"http\", and load with --http2"
            .into())
    }

    fn adopt(workload: &Workload, over_tls: bool) -> Result<Http2Asks, String> {
        Http2Asks::of(workload, over_tls)
    }
}
