//! Requests that never end, in their head or in their content.

use crate::slow::SlowRequest;

/// The part of the request that is sent slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPart {
    /// The head of the request.
    Headers,
    /// Its content, after a complete head.
    Body,
}

impl SlowPart {
    /// Both parts.
    pub const ALL: [SlowPart; 2] = [SlowPart::Headers, SlowPart::Body];

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            SlowPart::Headers => "headers",
            SlowPart::Body => "body",
        }
    }
}

/// Returns a request of `path` that never ends; at most `most` bytes of it may be sent slowly.
pub fn slow_request(part: SlowPart, host: &str, path: &str, most: u64) -> SlowRequest {
    match part {
        // A field whose value never ends.
        SlowPart::Headers => SlowRequest {
            at_once: Vec::new(),
            slowly: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nSlow: s").into(),
            status,
        },
        SlowPart::Body => {
            let length = most.saturating_add(2);
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            SlowRequest { at_once: head.into(), slowly: b"s".into(), status }
        }
    }
}

/// Parses the status of a status line such as `HTTP/1.1 408`.
fn status(said: &[u8]) -> Option<u16> {
    let digits = said.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_content_is_longer_than_the_bytes_to_send() {
        let SlowRequest { at_once, slowly, .. } = slow_request(SlowPart::Body, "h", "/a", 5);
        let head = String::from_utf8(at_once).unwrap();
        assert!(head.starts_with("POST /a HTTP/1.1\r\nHost: h\r\n"), "{head}");
        assert!(head.ends_with("Content-Length: 7\r\n\r\n") && slowly == b"s", "{head}");
    }

    #[test]
    fn reads_the_status_only_from_a_status_line() {
        assert_eq!(status(b"HTTP/1.1 408 Request Timeout\r\n"), Some(408));
        assert_eq!(status(b"HTTP/1.0 503"), Some(503));
        for other in [&b""[..], b"HTTP/1.1 4", b"HTTP/2 408 x", b"220 mail"] {
            assert_eq!(status(other), None);
        }
    }
}
