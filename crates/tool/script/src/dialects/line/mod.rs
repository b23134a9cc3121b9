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
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct Line;

impl Protocol for Line {
    type Asks = LineAsks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "line",
        schemes: &[Scheme { name: "line", port: None, tls: false }],
        alpn: None,
        url: "line://HOST:PORT",
        paths: false,
        adapters: &[],
        readiness_probe: None,
        greeting: Greeting {
            named: "lines",
            sends: |workload| if workload == "double" { "lines of integers" } else { "lines" },
            remedy: "`--workload double`, or a workload file with its requests",
            asks: |_, _| b"1\n".to_vec(),
            is_spoken: |answer| {
                let number = answer.strip_suffix(b"\n").unwrap_or_default();
                let number = number.strip_suffix(b"\r").unwrap_or(number);
                let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
                is_number || answer.starts_with(b"error: not an integer")
            },
        },
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
