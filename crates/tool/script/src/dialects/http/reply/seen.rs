//! Describes a reply that was received outside the load.

use regatta_proto::http1::{
    Method,
    client::{Decoder, Event},
};
use regatta_record::{ContentSeen, ReplySeen};
use ring::digest::{Context, SHA256};

/// Describes a reply to GET; `None` until it is complete, and if it is invalid or switches protocols.
pub(in crate::dialects::http) fn reply(data: &[u8]) -> Option<ReplySeen> {
    describe(data, |_| ())
}

/// Like [`reply`], with the content.
pub(in crate::dialects::http) fn reply_with_content(data: &[u8]) -> Option<ReplySeen> {
    let mut content = ContentSoFar::new();
    let seen = describe(data, |piece| content.add(piece))?;
    Some(ReplySeen { content: Some(content.seen()), ..seen })
}

/// A content while it arrives. Its digest is of the content with each number replaced by 0.
pub(in crate::dialects) struct ContentSoFar {
    digest: Context,
    bytes: u64,
    in_digits: bool,
}

impl ContentSoFar {
    pub fn new() -> Self {
        ContentSoFar { digest: Context::new(&SHA256), bytes: 0, in_digits: false }
    }

    /// Adds a piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        for byte in piece {
            let is_digit = byte.is_ascii_digit();
            if !is_digit {
                self.digest.update(&[*byte]);
            } else if !self.in_digits {
                self.digest.update(b"0");
            }
            self.in_digits = is_digit;
        }
    }

    /// Describes it.
    pub fn seen(self) -> ContentSeen {
        let digest = self.digest.finish();
        let digest = digest.as_ref().first_chunk().map(|first| u32::from_be_bytes(*first));
        ContentSeen { bytes: self.bytes, digest }
    }
}

fn describe(data: &[u8], mut content: impl FnMut(&[u8])) -> Option<ReplySeen> {
    let (mut decoder, mut rest, mut has_date) = (Decoder::default(), data, false);
    loop {
        match decoder.next(&mut rest, Method::Get).ok()?? {
            Event::Head(response) => {
                let mut names = response.fields.iter().map(|(name, _)| name);
                has_date = names.any(|name| name.eq_ignore_ascii_case(b"date"));
            }
            Event::End { .. } => {
                let bytes = (data.len() - rest.len()) as u64;
                return Some(ReplySeen { bytes, has_date, content: None });
            }
            Event::Content(piece) => content(piece),
            Event::Switched(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(reply: &str) -> ContentSeen {
        reply_with_content(reply.as_bytes()).unwrap().content.unwrap()
    }

    #[test]
    fn contents_that_differ_in_digits_only_have_the_same_digest() {
        let of = |text: &str| {
            content(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()))
        };
        let one = of("it is 12:34, request 5");
        assert_eq!(one.bytes, 22);
        assert_eq!(one.digest, of("it is 1:2345, request 678").digest);
        assert_ne!(one.digest, of("it is 12:34, Request 5").digest);
        assert_ne!(of("1").digest, of("").digest);
        assert_ne!(of("1 2").digest, of("12").digest);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                       7\r\nit is 1\r\nf\r\n2:34, request 5\r\n0\r\n\r\n";
        assert_eq!(content(chunked), one, "however it is sent");
        assert_eq!(reply_with_content(&chunked.as_bytes()[..40]), None);
        assert_eq!(reply(chunked.as_bytes()).unwrap().content, None);
    }
}
