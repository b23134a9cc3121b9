//! Reasons to refuse a message, and the statuses that report them.

use std::fmt;

/// The statuses of replies (RFC 9110, section 15; 431: RFC 6585, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are those of the RFC
pub enum Status {
    SwitchingProtocols,
    Ok,
    NoContent,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    ContentTooLarge,
    UriTooLong,
    ExpectationFailed,
    UpgradeRequired,
    FieldsTooLarge,
    InternalServerError,
    NotImplemented,
    ServiceUnavailable,
    VersionNotSupported,
}

impl Status {
    /// The number.
    pub fn code(self) -> u16 {
        match self {
            Status::SwitchingProtocols => 101,
            Status::Ok => 200,
            Status::NoContent => 204,
            Status::BadRequest => 400,
            Status::Unauthorized => 401,
            Status::Forbidden => 403,
            Status::NotFound => 404,
            Status::MethodNotAllowed => 405,
            Status::ContentTooLarge => 413,
            Status::UriTooLong => 414,
            Status::ExpectationFailed => 417,
            Status::UpgradeRequired => 426,
            Status::FieldsTooLarge => 431,
            Status::InternalServerError => 500,
            Status::NotImplemented => 501,
            Status::ServiceUnavailable => 503,
            Status::VersionNotSupported => 505,
        }
    }

    /// Returns whether replies with this status have content. 1xx and 204 have neither content nor
    /// Content-Length (RFC 9110, 8.6).
    #[inline]
    pub fn has_content(self) -> bool {
        !matches!(self, Status::SwitchingProtocols | Status::NoContent)
    }

    /// The complete status line. Its version is the server's own, independent of the client's (RFC
    /// 9110, 6.2).
    pub(super) fn line(self) -> &'static [u8] {
        match self {
            Status::SwitchingProtocols => b"HTTP/1.1 101 Switching Protocols\r\n",
            Status::Ok => b"HTTP/1.1 200 OK\r\n",
            Status::NoContent => b"HTTP/1.1 204 No Content\r\n",
            Status::BadRequest => b"HTTP/1.1 400 Bad Request\r\n",
            Status::Unauthorized => b"HTTP/1.1 401 Unauthorized\r\n",
            Status::Forbidden => b"HTTP/1.1 403 Forbidden\r\n",
            Status::NotFound => b"HTTP/1.1 404 Not Found\r\n",
            Status::MethodNotAllowed => b"HTTP/1.1 405 Method Not Allowed\r\n",
            Status::ContentTooLarge => b"HTTP/1.1 413 Content Too Large\r\n",
            Status::UriTooLong => b"HTTP/1.1 414 URI Too Long\r\n",
            Status::ExpectationFailed => b"HTTP/1.1 417 Expectation Failed\r\n",
            Status::UpgradeRequired => b"HTTP/1.1 426 Upgrade Required\r\n",
            Status::FieldsTooLarge => b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
            Status::InternalServerError => b"HTTP/1.1 500 Internal Server Error\r\n",
            Status::NotImplemented => b"HTTP/1.1 501 Not Implemented\r\n",
            Status::ServiceUnavailable => b"HTTP/1.1 503 Service Unavailable\r\n",
            Status::VersionNotSupported => b"HTTP/1.1 505 HTTP Version Not Supported\r\n",
        }
    }
}

/// A rule that a message violates. Later bytes cannot be trusted, so the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The status of the server's reply.
    pub status: Status,
    /// A sentence for the sender. It never quotes the message.
    pub why: &'static str,
}

impl Fault {
    /// A method that is not implemented.
    pub const METHOD: Fault = Fault::new(Status::NotImplemented, "The method is not implemented.");
    /// An expectation other than `100-continue` (RFC 9110, 10.1.1).
    pub const EXPECTATION: Fault =
        Fault::new(Status::ExpectationFailed, "The only supported expectation is 100-continue.");
    /// Content above [`MAX_BODY`](super::MAX_BODY).
    pub const CONTENT_TOO_LARGE: Fault =
        Fault::new(Status::ContentTooLarge, "The content is longer than 65536 bytes.");
    /// A request that names no host (RFC 9110, 7.2).
    pub const HOST_MISSING: Fault =
        Fault::bad("Expected :authority or a Host field: the host that is asked.");
    /// A request with several Host fields.
    pub const HOST_REPEATED: Fault = Fault::bad("There is more than one Host field: send one.");
    /// A target above [`MAX_LINE`](super::MAX_LINE).
    pub(super) const LINE_TOO_LONG: Fault =
        Fault::new(Status::UriTooLong, "The request line is longer than 8192 bytes.");

    /// A malformed message: 400.
    pub(super) const fn bad(why: &'static str) -> Self {
        Fault { status: Status::BadRequest, why }
    }

    pub(super) const fn new(status: Status, why: &'static str) -> Self {
        Fault { status, why }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for Fault {}
