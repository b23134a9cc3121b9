//! The readiness probe over HTTP: a request for a path.

use crate::readiness_probe::{Answer, ReadinessProbe};
use regatta_proto::http1::{Method, client::Ask};

/// Returns a probe that sends GET `path` to `host` and expects a status from 200 to 399.
pub(super) fn readiness_probe(path: &str, host: &str) -> ReadinessProbe {
    let fields = &[("Connection", "close")];
    let mut asks = Vec::new();
    Ask { method: Method::Get, target: path, host, fields, content: None }.write(&mut asks);
    ReadinessProbe { asks, what: format!("GET {path}"), answered }
}

fn answered(answer: &[u8], is_all: bool) -> Answer {
    let (line, is_whole) = match memchr::memchr(b'\n', answer) {
        Some(end) => (&answer[..end], true),
        None => (answer, is_all || answer.len() >= ReadinessProbe::ANSWER),
    };
    if !is_whole {
        return Answer::Begun;
    }
    let line = String::from_utf8_lossy(line).trim_end().to_owned();
    match status(&line) {
        Some(200..=399) => Answer::Ready,
        _ => Answer::NotReady(format!("{line:?}")),
    }
}

/// Parses the code of a status line (RFC 9112 section 4).
fn status(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_code_of_a_status_line() {
        assert_eq!(status("HTTP/1.1 204 No Content"), Some(204));
        assert_eq!(status("HTTP/1.0 503"), Some(503));
        assert_eq!(status("SSH-2.0-OpenSSH"), None);
    }

    #[test]
    fn judges_an_answer_by_its_complete_first_line() {
        let all = |answer: &str| answered(answer.as_bytes(), true);
        assert_eq!(answered(b"HTTP/1.1 200 O", false), Answer::Begun);
        assert_eq!(answered(b"HTTP/1.1 200 OK\r\nA: b", false), Answer::Ready);
        assert_eq!(all("HTTP/1.1 302 Found"), Answer::Ready);
        let busy = "HTTP/1.1 503 Busy\r\n\r\n";
        assert_eq!(all(busy), Answer::NotReady("\"HTTP/1.1 503 Busy\"".into()));
        assert_eq!(all(""), Answer::NotReady("\"\"".into()));
        assert!(matches!(answered(&[b'x'; ReadinessProbe::ANSWER], false), Answer::NotReady(_)));
    }

    #[test]
    fn the_request_has_a_host_and_connection_close() {
        let ReadinessProbe { asks, what, .. } = readiness_probe("/up", "127.0.0.1:1");
        let expected = "GET /up HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n";
        assert_eq!(
            (String::from_utf8(asks).unwrap().as_str(), what.as_str()),
            (expected, "GET /up")
        );
    }
}
