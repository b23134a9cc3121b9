//! Replies of the server, appended to a buffer.

use super::{Date, Status, Version, fields::is_token};

/// Asks a client that expects it to send its content (RFC 9110, 15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What a request requires of its reply's form. It outlives the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The client's version.
    pub version: Version,
    /// The request was HEAD: the reply's content is omitted (RFC 9110, 9.3.2).
    pub head_only: bool,
    /// The connection stays open after the reply (RFC 9112, 9.3). Otherwise the caller closes it
    /// once the reply is written.
    pub keep_alive: bool,
}

/// A reply of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its status.
    pub status: Status,
    /// The value of Allow: the methods of the target, e.g. `GET, HEAD, OPTIONS`. Empty: no such
    /// field.
    pub allow: &'static str,
    /// The media type of the content. Empty: no such field.
    pub content_type: &'static str,
    /// The content.
    pub content: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Creates a reply in plain text.
    pub const fn text(status: Status, content: &'a [u8]) -> Self {
        Reply { status, allow: "", content_type: "text/plain", content }
    }

    /// Creates the reply to OPTIONS (RFC 9110, 9.3.7).
    pub const fn options(allow: &'static str) -> Self {
        Reply { status: Status::NoContent, allow, content_type: "", content: b"" }
    }

    /// Creates the reply to an unsupported method. It must list the supported ones (RFC 9110,
    /// 15.5.6).
    pub const fn method_not_allowed(allow: &'static str) -> Self {
        let content = b"The target does not have this method; Allow lists those that it has.";
        Reply { allow, ..Reply::text(Status::MethodNotAllowed, content) }
    }

    /// Creates the reply to an unknown target.
    pub const fn not_found() -> Self {
        Reply::text(Status::NotFound, b"There is nothing under this path.")
    }

    /// Creates the reply of a server that switches to another protocol (RFC 9110, 15.2.2), to a
    /// request with [`wants_upgrade`](super::server::Request::wants_upgrade). It must name the
    /// protocol, so write it with [`Reply::write_with`] and an Upgrade field. `Connection: Upgrade`
    /// is added. All later bytes on the connection belong to the other protocol.
    pub const fn switching() -> Self {
        Reply { status: Status::SwitchingProtocols, allow: "", content_type: "", content: b"" }
    }

    /// Appends the reply.
    #[inline]
    pub fn write(&self, terms: Terms, date: &Date, out: &mut Vec<u8>) {
        self.write_with(&[], terms, date, out);
    }

    /// Appends the reply with additional fields.
    #[inline]
    pub fn write_with(&self, fields: &[Field<'_>], terms: Terms, date: &Date, out: &mut Vec<u8>) {
        let more: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 4).sum();
        let texts = self.allow.len() + self.content_type.len() + self.content.len();
        out.reserve(FIXED + more + texts);
        out.extend_from_slice(self.status.line());
        out.extend_from_slice(date.as_bytes());
        for field in fields {
            out.extend_from_slice(field.name.as_bytes());
            write_field(out, b": ", field.value.as_bytes());
        }
        if !self.allow.is_empty() {
            write_field(out, b"Allow: ", self.allow.as_bytes());
        }
        if self.status.has_content() {
            if !self.content_type.is_empty() {
                write_field(out, b"Content-Type: ", self.content_type.as_bytes());
            }
            // The reply to HEAD has the length of the omitted content.
            let mut length = itoa::Buffer::new();
            write_field(out, b"Content-Length: ", length.format(self.content.len()).as_bytes());
        }
        // These have a constant length, so a few instructions copy each.
        match (terms.keep_alive, terms.version) {
            _ if self.status == Status::SwitchingProtocols => {
                out.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
            }
            (true, Version::Http11) => out.extend_from_slice(b"\r\n"),
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n\r\n"),
            (false, _) => out.extend_from_slice(b"Connection: close\r\n\r\n"),
        }
        if self.status.has_content() && !terms.head_only {
            out.extend_from_slice(self.content);
        }
    }
}

/// Upper bound on the bytes of a reply besides its texts.
const FIXED: usize = 256;

#[inline]
fn write_field<const N: usize>(out: &mut Vec<u8>, name: &[u8; N], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// An additional field of a reply. It is validated: it cannot end its line early, and it cannot
/// change where the reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> Field<'a> {
    /// Returns `None` if the name is not a token, if the value contains a control character other
    /// than tab, e.g. CR, LF or NUL (RFC 9110, 5.5), or if the field frames the reply: [`Reply`]
    /// writes Connection, Content-Length and Transfer-Encoding itself.
    pub fn new(name: &'a str, value: &'a str) -> Option<Self> {
        const OWN: [&str; 3] = ["Connection", "Content-Length", "Transfer-Encoding"];
        let own = OWN.iter().any(|own| own.eq_ignore_ascii_case(name));
        let control = value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
        (is_token(name.as_bytes()) && !own && !control).then_some(Field { name, value })
    }
}

/// A complete reply that is written once and appended many times, each time with one copy.
///
/// It suits a service whose reply depends only on the terms and the time. Such a service calls
/// [`Prepared::is_for`] for each request, [`Prepared::prepare`] if that returns `false`, and then
/// [`Prepared::append`]. Preparing again reuses the memory.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    bytes: Vec<u8>,
    /// The terms and the second of the Date field.
    of: Option<(Terms, u64)>,
}

impl Prepared {
    /// Replaces the prepared reply with `reply`, written with these terms and this date.
    pub fn prepare(&mut self, reply: &Reply<'_>, terms: Terms, date: &Date) {
        self.bytes.clear();
        reply.write(terms, date, &mut self.bytes);
        self.of = Some((terms, date.unix_s()));
    }

    /// Returns whether the reply was prepared for these terms and this date. The caller must know
    /// that the reply and its content are the right ones.
    #[inline]
    pub fn is_for(&self, terms: Terms, date: &Date) -> bool {
        self.of == Some((terms, date.unix_s()))
    }

    /// Appends the reply, or nothing if none was prepared.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }
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
    fn writes_a_reply_byte_for_byte() {
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
    fn terms_determine_connection_and_content() {
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
    fn options_has_no_content_and_405_lists_the_allowed_methods() {
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
    fn writes_a_switch_of_protocols_byte_for_byte() {
        let upgrade = Field::new("Upgrade", "websocket").unwrap();
        let accept = Field::new("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=").unwrap();
        for keep_alive in [true, false] {
            let mut out = Vec::new();
            let terms = Terms { keep_alive, ..KEPT };
            let date = Date::at(784_111_777);
            Reply::switching().write_with(&[upgrade, accept], terms, &date, &mut out);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                "HTTP/1.1 101 Switching Protocols\r\n\
                 Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                 Upgrade: websocket\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
                 Connection: Upgrade\r\n\
                 \r\n"
            );
        }
    }

    #[test]
    fn refuses_fields_that_could_split_a_reply() {
        for (name, value) in [("X", ""), ("X-Y_z", "a\tb c"), ("Upgrade", "\u{e9}"), ("TE", ":")] {
            assert!(Field::new(name, value).is_some(), "{name}: {value}");
        }
        for (name, value) in [
            ("", "a"),
            ("X Y", "a"),
            ("X:", "a"),
            ("X\r\nY", "a"),
            ("\u{e9}", "a"),
            ("X", "a\r\nY: b"),
            ("X", "a\nb"),
            ("X", "a\rb"),
            ("X", "a\0b"),
            ("X", "\x7f"),
            ("connection", "close"),
            ("Content-length", "1"),
            ("TRANSFER-ENCODING", "chunked"),
        ] {
            assert_eq!(
                Field::new(name, value),
                None,
                "{}: {}",
                name.escape_debug(),
                value.escape_debug()
            );
        }
    }

    #[test]
    fn a_prepared_reply_equals_a_written_one() {
        let (now, later) = (Date::at(784_111_777), Date::at(784_111_778));
        let closed = Terms { keep_alive: false, ..KEPT };
        let head = Terms { head_only: true, ..KEPT };
        let old = Terms { version: Version::Http10, ..KEPT };
        let reply = Reply::text(Status::Ok, b"abc");
        let mut prepared = Prepared::default();
        assert!(!prepared.is_for(KEPT, &now));
        let all = [KEPT, closed, head, old].map(|terms| [(terms, now), (terms, later)]);
        for (terms, date) in all.into_iter().flatten() {
            prepared.prepare(&reply, terms, &date);
            let (mut written, mut appended) = (b"before".to_vec(), b"before".to_vec());
            reply.write(terms, &date, &mut written);
            prepared.append(&mut appended);
            assert_eq!(appended, written);
            for (other_terms, other_date) in all.into_iter().flatten() {
                let same = (other_terms, other_date) == (terms, date);
                assert_eq!(prepared.is_for(other_terms, &other_date), same);
            }
        }
    }

    #[test]
    fn status_lines_contain_their_codes() {
        for status in [
            Status::SwitchingProtocols,
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
