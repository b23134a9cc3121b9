//! Fields that determine where a message ends and whether its connection persists (RFC 9112,
//! sections 6 and 9). Client and server collect them here; each draws its own conclusions.

use super::{
    Fault, Status,
    fields::{is_token, trim},
    target::is_host,
};
use httparse::Header;

/// The contents of these fields.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Content-Length. A number that does not fit is saturated.
    pub(super) length: Option<u64>,
    pub(super) coding: Coding,
    /// Connection contains `close`.
    pub(super) close: bool,
    /// Connection contains `keep-alive`.
    pub(super) keep_alive: bool,
    /// Connection contains `upgrade`.
    pub(super) upgrade: bool,
    /// Upgrade names a protocol.
    pub(super) protocols: bool,
    /// There is a Host field.
    pub(super) host: bool,
    pub(super) expects: Expects,
}

/// The contents of Transfer-Encoding, with all its fields as one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Coding {
    #[default]
    Absent,
    /// `chunked` alone.
    Chunked,
    /// `chunked` after other codings.
    ThenChunked,
    /// The last one is not `chunked`.
    Other,
}

/// The contents of Expect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Expects {
    #[default]
    Nothing,
    /// `100-continue`.
    Continue,
    /// Anything else.
    Unknown,
}

impl Found {
    /// Collects the fields. Refuses a malformed or repeated Host or Content-Length, a malformed
    /// Transfer-Encoding, and Content-Length together with Transfer-Encoding.
    #[inline]
    pub(super) fn new(fields: &[Header<'_>]) -> Result<Found, Fault> {
        let mut found = Found::default();
        for field in fields {
            // Most other fields have another length.
            match field.name.len() {
                4 if field.name.eq_ignore_ascii_case("Host") => found.host(field.value)?,
                6 if field.name.eq_ignore_ascii_case("Expect") => found.expect(field.value),
                7 if field.name.eq_ignore_ascii_case("Upgrade") => found.upgrade(field.value),
                10 if field.name.eq_ignore_ascii_case("Connection") => {
                    found.connection(field.value);
                }
                14 if field.name.eq_ignore_ascii_case("Content-Length") => {
                    found.content_length(field.value)?;
                }
                17 if field.name.eq_ignore_ascii_case("Transfer-Encoding") => {
                    found.transfer_encoding(field.value)?;
                }
                _ => {}
            }
        }
        found.check()?;
        Ok(found)
    }

    /// RFC 9112, 6.1: a sender must not send both, and a recipient should suspect an attempt at
    /// smuggling.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.length.is_some() && self.coding != Coding::Absent {
            return Err(Fault::bad(
                "Content-Length and Transfer-Encoding contradict each other: send one of them.",
            ));
        }
        Ok(())
    }

    /// RFC 9112, 3.2: a second Host field, or an invalid one, is answered with 400.
    pub(super) fn host(&mut self, value: &[u8]) -> Result<(), Fault> {
        if std::mem::replace(&mut self.host, true) {
            return Err(Fault::HOST_REPEATED);
        }
        if !is_host(value) {
            return Err(Fault::bad("Expected a host and an optional port in the Host field."));
        }
        Ok(())
    }

    /// RFC 9110, 10.1.1: an unknown expectation may be answered with 417.
    pub(super) fn expect(&mut self, value: &[u8]) {
        let known = value.eq_ignore_ascii_case(b"100-continue");
        self.expects = match self.expects {
            Expects::Nothing | Expects::Continue if known => Expects::Continue,
            _ => Expects::Unknown,
        };
    }

    /// RFC 9112, 9.3 and 9.6.
    pub(super) fn connection(&mut self, value: &[u8]) {
        match value {
            // Most values are one of these.
            b"keep-alive" | b"Keep-Alive" => return self.keep_alive = true,
            b"close" => return self.close = true,
            _ => {}
        }
        for option in value.split(|&b| b == b',').map(trim) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// RFC 9110, 7.8: a list of protocols.
    pub(super) fn upgrade(&mut self, value: &[u8]) {
        self.protocols |= !value.is_empty();
    }

    /// RFC 9112, 6.3, rule 5, and RFC 9110, 8.6: only digits. A second field is refused even if it
    /// is equal, which both RFCs permit.
    pub(super) fn content_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.length.is_some() {
            return Err(Fault::bad("There is more than one Content-Length: send one."));
        }
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(Fault::bad("Expected only digits in Content-Length."));
        }
        self.length = Some(value.iter().fold(0, |length: u64, digit| {
            length.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        }));
        Ok(())
    }

    /// RFC 9112, 6.1 and 7: `chunked` once, without parameters. Of other codings only the position
    /// matters here, because none is supported. An empty element is refused: it is not a coding,
    /// and its only known use is to be interpreted in two ways.
    pub(super) fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Fault> {
        const MALFORMED: Fault = Fault::bad("Expected a list of codings in Transfer-Encoding.");
        for coding in value.split(|&b| b == b',').map(trim) {
            let name = coding.split(|&b| b == b';').next().map_or(coding, trim);
            if !is_token(name) {
                return Err(MALFORMED);
            }
            self.coding = match (name.eq_ignore_ascii_case(b"chunked"), self.coding) {
                (true, _) if name.len() < coding.len() => {
                    return Err(Fault::bad("The chunked coding has no parameters."));
                }
                (true, Coding::Absent) => Coding::Chunked,
                (true, Coding::Other) => Coding::ThenChunked,
                (true, Coding::Chunked | Coding::ThenChunked) => {
                    return Err(Fault::bad("The chunked coding is applied more than once."));
                }
                (false, Coding::Chunked | Coding::ThenChunked) => {
                    return Err(Fault::bad("The chunked coding is not the last one."));
                }
                (false, _) => Coding::Other,
            };
        }
        Ok(())
    }
}

impl Coding {
    /// Returns whether the content is chunked. If `chunked` is not the last coding of a request,
    /// its end is unknown: 400 (RFC 9112, 6.3, rule 4). An unsupported coding is answered with 501
    /// (RFC 9112, 6.1).
    pub(super) fn chunked(self) -> Result<bool, Fault> {
        match self {
            Coding::Absent => Ok(false),
            Coding::Chunked => Ok(true),
            Coding::Other => Err(Fault::bad("Expected chunked as the last transfer coding.")),
            Coding::ThenChunked => Err(Fault::new(
                Status::NotImplemented,
                "The only supported transfer coding is chunked.",
            )),
        }
    }
}
