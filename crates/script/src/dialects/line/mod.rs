//! Lines over TCP: a request is a line, and so is its reply. A line ends with a newline.
//!
//! If every reply is known to the byte, checking is one comparison of memory ([`crate::Exact`]). If
//! some replies are described by a prefix or a regular expression, received bytes are split at newlines
//! and checked line by line (`receive`). This is decided once per workload.

mod asks;
mod built_in;
mod compose;
mod file;
mod patterns;
mod receive;

pub use asks::LineAsks;
pub use receive::Lines;

use crate::{
    protocol::{Protocol, Row, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct Line;

impl Protocol for Line {
    type Asks = LineAsks;

    const ROW: Row = Row {
        name: "line",
        schemes: &[Scheme { name: "line", port: None, tls: false }],
        alpn: None,
        url: "line://HOST:PORT",
        paths: false,
        adapters: &[],
        knock: None,
    };

    fn built_in() -> Vec<LineAsks> {
        vec![LineAsks::Double, LineAsks::Echo, LineAsks::Dialogue]
    }

    fn usual(_: Option<&str>) -> LineAsks {
        LineAsks::Double
    }

    fn read(file: FileText<'_>) -> Result<LineAsks, String> {
        LineAsks::read(file)
    }
}
