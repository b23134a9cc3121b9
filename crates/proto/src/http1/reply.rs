//! Replies of the server end, appended to a buffer.

use super::{Date, Status, Version};

/// Tells a client that waits with its content to send it (RFC 9110, 15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What a request asks of the form of its reply. It outlives the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What the client speaks.
    pub version: Version,
    /// It was a HEAD: the reply's content is left out (RFC 9110, 9.3.2).
    pub head_only: bool,
    /// The connection goes on after the reply (RFC 9112, 9.3). If not, the caller closes it once
    /// the reply is written.
    pub keep_alive: bool,
}

/// A reply whose length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its status.
    pub status: Status,
    /// The methods of the target, for Allow: `GET, HEAD, OPTIONS`. Empty: no such field.
    pub allow: &'static str,
    /// The media type of the content. Not written if there is none.
    pub content_type: &'static str,
    /// The content.
    pub content: &'a [u8],
}

impl<'a> Reply<'a> {
    /// A reply in plain text.
    pub const fn text(status: Status, content: &'a [u8]) -> Self {
        Reply { status, allow: "", content_type: "text/plain", content }
    }

    /// The reply to OPTIONS (RFC 9110, 9.3.7).
    pub const fn options(allow: &'static str) -> Self {
        Reply { status: Status::NoContent, allow, content_type: "", content: b"" }
    }

    /// The reply to a method that the target does not have. It must tell which it has
    /// (RFC 9110, 15.5.6).
    pub const fn method_not_allowed(allow: &'static str) -> Self {
        let content = b"The target does not have this method; Allow lists those that it has.";
        Reply { allow, ..Reply::text(Status::MethodNotAllowed, content) }
    }

    /// The reply to a target that is not there.
    pub const fn not_found() -> Self {
        Reply::text(Status::NotFound, b"There is nothing under this path.")
    }

    /// Appends the reply.
    #[inline]
    pub fn write(&self, terms: Terms, date: &Date, out: &mut Vec<u8>) {
        out.reserve(FIXED + self.allow.len() + self.content_type.len() + self.content.len());
        out.extend_from_slice(self.status.line());
        out.extend_from_slice(date.as_bytes());
        if !self.allow.is_empty() {
            field(out, "Allow: ", self.allow);
        }
        // RFC 9110, 8.6: 204 has neither content nor its length. The reply to HEAD has the length
        // that the content would have.
        if self.status != Status::NoContent {
            if !self.content_type.is_empty() {
                field(out, "Content-Type: ", self.content_type);
            }
            field(out, "Content-Length: ", itoa::Buffer::new().format(self.content.len()));
        }
        match (terms.keep_alive, terms.version) {
            (true, Version::Http11) => {}
            (true, Version::Http10) => field(out, "Connection: ", "keep-alive"),
            (false, _) => field(out, "Connection: ", "close"),
        }
        out.extend_from_slice(b"\r\n");
        if !terms.head_only && self.status != Status::NoContent {
            out.extend_from_slice(self.content);
        }
    }
}

/// At least as many bytes as a reply has besides its own texts.
const FIXED: usize = 256;

#[inline]
fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Terms = Terms { version: Version::Http11, head_only: false, keep_alive: true };

    fn written(reply: Reply<'_>, terms: Terms) -> String {
        let mut out = Vec::new();
        reply.write(terms, &Date::at(784_111_777), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_reply_byte_for_byte() {
        assert_eq!(
            written(Reply::text(Status::Ok, b"Hello. The time is 784111777"), KEPT),
            "HTTP/1.1 200 OK\r\n\
             Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Content-Type: text/plain\r\n\
             Content-Length: 28\r\n\
             \r\n\
             Hello. The time is 784111777"
        );
    }

    #[test]
    fn terms_decide_on_connection_and_content() {
        let reply = Reply::text(Status::Ok, b"abc");
        let end = |terms| {
            let text = written(reply, terms);
            text.split_once("Content-Length: ").unwrap().1.to_owned()
        };
        assert_eq!(end(KEPT), "3\r\n\r\nabc");
        assert_eq!(end(Terms { head_only: true, ..KEPT }), "3\r\n\r\n");
        let closed = Terms { keep_alive: false, ..KEPT };
        assert_eq!(end(closed), "3\r\nConnection: close\r\n\r\nabc");
        let old = Terms { version: Version::Http10, ..KEPT };
        assert_eq!(end(old), "3\r\nConnection: keep-alive\r\n\r\nabc");
        let old_closed = Terms { keep_alive: false, ..old };
        assert_eq!(end(old_closed), "3\r\nConnection: close\r\n\r\nabc");
    }

    #[test]
    fn options_has_no_content_and_405_tells_what_is_allowed() {
        assert_eq!(
            written(Reply::options("GET, OPTIONS"), KEPT),
            "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Allow: GET, OPTIONS\r\n\r\n"
        );
        let refused = written(Reply::method_not_allowed("GET"), KEPT);
        assert!(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{refused}");
        assert!(refused.contains("\r\nAllow: GET\r\n"), "{refused}");
    }

    #[test]
    fn status_lines_tell_their_codes() {
        for status in [
            Status::Ok,
            Status::NoContent,
            Status::BadRequest,
            Status::NotFound,
            Status::MethodNotAllowed,
            Status::ContentTooLarge,
            Status::UriTooLong,
            Status::ExpectationFailed,
            Status::FieldsTooLarge,
            Status::InternalServerError,
            Status::NotImplemented,
            Status::VersionNotSupported,
        ] {
            let line = format!("HTTP/1.1 {} ", status.code());
            assert!(written(Reply::text(status, b""), KEPT).starts_with(&line), "{status:?}");
        }
    }
}
