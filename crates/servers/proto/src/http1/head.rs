//! The careful parser of heads, based on `httparse`. It parses the first line and the fields of a
//! head whose end is known, and determines the fault of a refused head.
//!
//! `httparse` accepts three things that its callers refuse first: a bare LF and heads of any length
//! (see [`super::scan`]), and empty lines in front (client and server check the first bytes). It is
//! stricter in one: it only knows HTTP/1.0 and HTTP/1.1.

use super::{
    Fault, MAX_FIELDS, MAX_HEAD, Status,
    fields::{is_token, is_token_byte},
    framing::{Coding, Expects, Found},
    method::Method,
    target::{self, Split},
};
use httparse::{Error, Header, Status::Complete};
use std::mem::MaybeUninit;

/// The supported versions. HTTP/1.2 to HTTP/1.9 are treated as 1.1 (RFC 9110, 2.5 and 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// Parses `HTTP/1.x`.
    #[inline]
    pub(super) fn parse(text: [u8; Version::LEN]) -> Option<Self> {
        if text == *b"HTTP/1.1" {
            return Some(Version::Http11);
        }
        match text.strip_prefix(b"HTTP/1.") {
            Some(b"0") => Some(Version::Http10),
            Some([b'2'..=b'9']) => Some(Version::Http11),
            _ => None,
        }
    }

    fn from_minor(minor: Option<u8>) -> Self {
        if minor == Some(0) { Version::Http10 } else { Version::Http11 }
    }

    /// Length of `HTTP/1.x` in bytes.
    pub(super) const LEN: usize = 8;
}

/// The accepted head of a request. It holds offsets into the head, not references, so that a
/// decoder can keep it until the content has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) method: Method,
    pub(super) version: Version,
    /// Where the target ends, less than `MAX_LINE`. It starts one space after the method.
    pub(super) target_end: u16,
    /// Where the path is in the target.
    pub(super) split: Split,
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    pub(super) keep_alive: bool,
    pub(super) awaits_continue: bool,
    pub(super) wants_upgrade: bool,
}

impl RequestHead {
    /// Parses a complete head, from the request line to the empty line.
    #[inline]
    pub(super) fn read(head: &[u8]) -> Result<Self, Fault> {
        let mut space = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut parsed = httparse::Request::new(&mut []);
        match parsed.parse_with_uninit_headers(head, &mut space) {
            Ok(Complete(end)) if end == head.len() => {}
            Ok(_) => return Err(REQUEST_LINE),
            Err(Error::Version) if let Some(at) = higher_minor_of_request(head) => {
                return with_minor_1(head, at, RequestHead::read);
            }
            Err(error) => return Err(request_fault(error, head)),
        }
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(REQUEST_LINE);
        };
        let version = Version::from_minor(parsed.version);
        // RFC 9110, 9.1: an unknown or unimplemented method is answered with 501. This includes
        // CONNECT, because the bytes after it may not be HTTP (9.3.6).
        let target_end = method.len() + 1 + target.len();
        let method = match Method::parse(method) {
            Some(Method::Connect) | None => return Err(METHOD),
            Some(method) => method,
        };
        target::check(method, target.as_bytes())?;
        let found = Found::new(parsed.headers)?;
        RequestHead::new(method, target_end, Split::of(target.as_bytes()), version, &found)
    }

    /// Combines the parts of a head, each of which is well-formed. Both parsers of request heads
    /// use this.
    #[inline(always)]
    pub(super) fn new(
        method: Method,
        target_end: usize,
        split: Split,
        version: Version,
        found: &Found,
    ) -> Result<Self, Fault> {
        if version == Version::Http11 && !found.host {
            return Err(Fault::bad("HTTP/1.1 requires a Host field."));
        }
        // RFC 9112, 6.1: such framing is faulty in 1.0.
        if version == Version::Http10 && found.coding != Coding::Absent {
            return Err(Fault::bad("HTTP/1.0 does not support Transfer-Encoding."));
        }
        if found.expects == Expects::Unknown {
            return Err(Fault::EXPECTATION);
        }
        Ok(RequestHead {
            method,
            version,
            target_end: target_end as u16,
            split,
            length: found.length,
            chunked: found.coding.chunked()?,
            keep_alive: persists(version, found),
            // RFC 9110, 10.1.1: expectations of 1.0 clients are ignored.
            awaits_continue: found.expects == Expects::Continue && version == Version::Http11,
            // RFC 9110, 7.8: ignored in 1.0, too.
            wants_upgrade: found.upgrade && found.protocols && version == Version::Http11,
        })
    }

    /// Returns the first fault in complete lines of an incomplete head.
    pub(super) fn check_lines(lines: &[u8]) -> Result<(), Fault> {
        let mut space = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        match httparse::Request::new(&mut []).parse_with_uninit_headers(lines, &mut space) {
            Ok(_) => Ok(()),
            Err(Error::Version) if let Some(at) = higher_minor_of_request(lines) => {
                with_minor_1(lines, at, RequestHead::check_lines)
            }
            Err(error) => Err(request_fault(error, lines)),
        }
    }

    /// Checks the first bytes of a request; there must be at least one. RFC 9112, 3: a request
    /// starts with a method, which is a token. A method longer than [`Method::MAX_AWAITED`] is
    /// refused before its end has arrived.
    #[inline]
    pub(super) fn check_start(bytes: &[u8]) -> Result<(), Fault> {
        if !bytes.first().is_some_and(|&byte| is_token_byte(byte)) {
            return Err(REQUEST_LINE);
        }
        match bytes.get(..=Method::MAX_AWAITED) {
            Some(start) if is_token(start) => Err(METHOD),
            _ => Ok(()),
        }
    }

    /// Returns the fault of a request line longer than `MAX_LINE`. RFC 9112, 3: 501 if the method
    /// is longer than any implemented one, otherwise 414.
    pub(super) fn too_long(line: &[u8]) -> Fault {
        let method = line.split(|&b| b == b' ').next().unwrap_or(line);
        if method.len() > Method::MAX_KNOWN && is_token(method) { METHOD } else { LINE_TOO_LONG }
    }
}

/// The accepted head of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseHead {
    pub(super) version: Version,
    pub(super) status: u16,
    /// Where the fields start in the head.
    pub(super) fields_at: usize,
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    pub(super) keep_alive: bool,
}

impl ResponseHead {
    /// Parses a complete head, from the status line to the empty line.
    #[inline]
    pub(super) fn read(head: &[u8]) -> Result<Self, Fault> {
        let mut space = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut parsed, head, &mut space) {
            Ok(Complete(end)) if end == head.len() => {}
            Ok(_) => return Err(STATUS_LINE),
            Err(Error::Version) if let Some(at) = higher_minor_of_response(head) => {
                return with_minor_1(head, at, ResponseHead::read);
            }
            Err(error) => return Err(response_fault(error)),
        }
        let version = Version::from_minor(parsed.version);
        // RFC 9110, section 15: the classes are 1 to 5.
        let status = match parsed.code {
            Some(status @ 100..=599) => status,
            _ => return Err(Fault::bad("Expected a status from 100 to 599.")),
        };
        let found = Found::new(parsed.headers)?;
        if version == Version::Http10 && found.coding != Coding::Absent {
            return Err(Fault::bad("HTTP/1.0 does not support Transfer-Encoding."));
        }
        let line_end = memchr::memchr(b'\n', head).ok_or(STATUS_LINE)?;
        Ok(ResponseHead {
            version,
            status,
            fields_at: line_end + 1,
            length: found.length,
            chunked: found.coding.chunked()?,
            keep_alive: persists(version, &found),
        })
    }

    /// Returns the first fault in complete lines of an incomplete head.
    pub(super) fn check_lines(lines: &[u8]) -> Result<(), Fault> {
        let mut space = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut parsed, lines, &mut space) {
            Ok(_) => Ok(()),
            Err(Error::Version) if let Some(at) = higher_minor_of_response(lines) => {
                with_minor_1(lines, at, ResponseHead::check_lines)
            }
            Err(error) => Err(response_fault(error)),
        }
    }
}

/// Checks a complete block of field lines including its empty line, and that no field is
/// `forbidden`.
pub(super) fn check_trailers(block: &[u8], forbidden: fn(&str) -> bool) -> Result<(), Fault> {
    let mut space = [httparse::EMPTY_HEADER; MAX_FIELDS];
    match httparse::parse_headers(block, &mut space) {
        Ok(Complete((end, fields))) if end == block.len() => {
            let forbidden = fields.iter().any(|field: &Header<'_>| forbidden(field.name));
            if forbidden { Err(FORBIDDEN_TRAILER) } else { Ok(()) }
        }
        Err(Error::TooManyHeaders) => Err(TOO_MANY_FIELDS),
        Ok(_) | Err(_) => Err(Fault::bad("A trailer field is malformed.")),
    }
}

/// RFC 9112, 9.3: a 1.1 connection persists unless closed, a 1.0 connection only on request.
fn persists(version: Version, found: &Found) -> bool {
    !found.close && (version == Version::Http11 || found.keep_alive)
}

const REQUEST_LINE: Fault =
    Fault::bad("Expected a request line: method, target and HTTP/1.1 with one space between.");
const STATUS_LINE: Fault = Fault::bad("Expected a status line: HTTP/1.1, three digits, a reason.");
const NAME: Fault = Fault::bad(
    "Expected a field: a name, directly followed by a colon, and a value. A line that starts with \
     a space does not continue the previous one.",
);
const VALUE: Fault = Fault::bad("A field's value contains a control character or a bare CR.");
/// A line that does not end with CR LF (RFC 9112, 2.2).
pub(super) const LINE_END: Fault = Fault::bad("Expected CR LF at the end of a line.");
const TOO_MANY_FIELDS: Fault =
    Fault::new(Status::FieldsTooLarge, "There are more than 100 fields.");
const LINE_TOO_LONG: Fault = Fault::LINE_TOO_LONG;
const METHOD: Fault = Fault::METHOD;
const FORBIDDEN_TRAILER: Fault =
    Fault::bad("A trailer contains a field that is only allowed in a head.");

fn request_fault(error: Error, head: &[u8]) -> Fault {
    match error {
        Error::HeaderName => NAME,
        Error::HeaderValue => VALUE,
        Error::NewLine => LINE_END,
        Error::TooManyHeaders => TOO_MANY_FIELDS,
        Error::Version if names_another_version(head) => {
            Fault::new(Status::VersionNotSupported, "Only HTTP/1.1 and HTTP/1.0 are supported.")
        }
        Error::Version | Error::Status | Error::Token => REQUEST_LINE,
    }
}

fn response_fault(error: Error) -> Fault {
    match error {
        Error::HeaderName => NAME,
        Error::HeaderValue => VALUE,
        Error::NewLine => LINE_END,
        Error::TooManyHeaders => TOO_MANY_FIELDS,
        Error::Version | Error::Status | Error::Token => STATUS_LINE,
    }
}

/// Calls `read` with a copy of `head` whose minor version, at `at`, is replaced by 1.
///
/// `httparse` parses only 1.0 and 1.1. A higher minor version is treated as 1.1 (RFC 9110, 2.5). No
/// such version is in use, so the cost of the copy does not matter.
#[cold]
#[inline(never)]
fn with_minor_1<T>(head: &[u8], at: usize, read: fn(&[u8]) -> T) -> T {
    let mut copy = [0; MAX_HEAD];
    let copy = &mut copy[..head.len()];
    copy.copy_from_slice(head);
    copy[at] = b'1';
    read(copy)
}

/// The position of the minor version in a request line that ends with HTTP/1.2 to HTTP/1.9.
fn higher_minor_of_request(head: &[u8]) -> Option<usize> {
    let line = head.split(|&b| b == b'\r').next()?;
    let at = line.len().checked_sub(Version::LEN)?;
    let version = names_higher_minor(line.get(at..)?) && line[..at].ends_with(b" ");
    version.then_some(line.len() - 1)
}

/// The position of the minor version in a status line that starts with HTTP/1.2 to HTTP/1.9.
fn higher_minor_of_response(head: &[u8]) -> Option<usize> {
    names_higher_minor(head.get(..Version::LEN)?).then_some(Version::LEN - 1)
}

fn names_higher_minor(text: &[u8]) -> bool {
    matches!(text, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'])
}

/// Returns whether the request line ends with a well-formed but unsupported version (RFC 9112,
/// 2.3). The status is then 505 (RFC 9110, 15.6.6).
fn names_another_version(head: &[u8]) -> bool {
    let line = head.split(|&b| b == b'\r').next().unwrap_or(head);
    let mut parts = line.split(|&b| b == b' ').skip(2);
    let version = parts.next().unwrap_or(&[]);
    parts.next().is_none()
        && matches!(version, [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'])
}
