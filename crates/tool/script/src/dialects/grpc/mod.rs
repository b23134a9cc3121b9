//! gRPC: unary calls and server streaming over HTTP/2, without TLS and compression.
//!
//! `asks` has the calls, from the options of a load or from a file (`file`). The connection is that of
//! HTTP/2; only responses are checked differently (`reply`): a response is one message with a prefix
//! (`framing`) or a `stream` of them, and its outcome is in its trailers (`status`). `protobuf` reads messages as JSON,
//! and compares them by their fields. The expected messages of a stream may have their number in place of a
//! `placeholder`, and become a `template`. `canned` has the response of the null server.

mod arriving;
mod asks;
mod canned;
mod file;
mod framing;
mod hex;
mod placeholder;
mod protobuf;
mod reply;
pub mod rules;
mod status;
mod stream;
mod template;
#[cfg(test)]
mod tests;
mod timeout;

pub use asks::{GrpcAsks, GrpcCall};
pub use hex::from_hex;
pub use protobuf::Types;
pub use stream::{ExpectedMessage, MessageStream};
pub use template::Template;

use crate::{
    dialects::http2::Http2,
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct Grpc;

impl Protocol for Grpc {
    type Asks = GrpcAsks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "grpc",
        schemes: &[Scheme { name: "grpc", port: None, tls: false }],
        alpn: None,
        url: "grpc://HOST:PORT/PACKAGE.SERVICE/METHOD",
        paths: true,
        adapters: &[],
        readiness_probe: None,
        // A call would show only whether the server has this method.
        greeting: Greeting {
            named: "HTTP/2 (perhaps gRPC)",
            sends: |_| "gRPC calls",
            remedy: "`--http2`, or `regatta load grpc://…`",
            ..Http2::INFO.greeting
        },
    };

    fn built_in() -> Vec<GrpcAsks> {
        Vec::new()
    }

    fn usual(path: Option<&str>) -> GrpcAsks {
        GrpcAsks::of_one(GrpcCall::new(path.unwrap_or("/")))
    }

    fn read(file: FileText<'_>) -> Result<GrpcAsks, String> {
        file::read(file)
    }
}
