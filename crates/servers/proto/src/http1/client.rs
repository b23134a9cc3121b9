//! The client side: requests → bytes, and bytes → responses.

use super::{
    Fault, Fields, MAX_HEAD, MAX_LINE, Method, Version,
    chunked::{Chunked, Piece},
    head::{LINE_END, ResponseHead},
    scan::{Broken, Limits, Scan},
};
use std::fmt;

/// Maximum number of interim responses (1xx) before a response.
pub const MAX_INTERIM: u32 = 16;

/// A request to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Its method.
    pub method: Method,
    /// Its target, usually a path with a query.
    pub target: &'a str,
    /// Host and port of the server.
    pub host: &'a str,
    /// Additional fields. Host and Content-Length are written automatically.
    pub fields: &'a [(&'a str, &'a str)],
    /// Its content. `None` sends no Content-Length; empty content sends a length of zero.
    pub content: Option<&'a [u8]>,
}

impl Ask<'_> {
    /// Appends the request. Nothing is validated: all parts are written unchanged.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut write = |texts: &[&str]| {
            texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
        };
        write(&[self.method.as_str(), " ", self.target, " HTTP/1.1\r\nHost: ", self.host, "\r\n"]);
        for (name, value) in self.fields {
            write(&[name, ": ", value, "\r\n"]);
        }
        if let Some(content) = self.content {
            let mut length = itoa::Buffer::new();
            write(&["Content-Length: ", length.format(content.len()), "\r\n"]);
        }
        write(&["\r\n"]);
        out.extend_from_slice(self.content.unwrap_or(&[]));
    }
}

/// Reads the responses of one connection, in the order of the requests.
///
/// Content of any length is returned as it arrives. A head is returned once it is complete.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// Interim responses since the last final one.
    interim: u32,
}

/// A part of a response.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The head of a final response, 200 to 599. Interim responses (1xx) before it are skipped, except
    /// 101.
    Head(Response<'a>),
    /// The head of a 101. The server has switched to the protocol named in its Upgrade field (RFC
    /// 9110, 15.2.2). This is the last event. The head is removed from the input. The remaining
    /// bytes, and all later ones, are not HTTP; the decoder takes none of them.
    Switched(Response<'a>),
    /// A part of its content, never empty.
    Content(&'a [u8]),
    /// The end of its content.
    End {
        /// Whether another request may be sent. If not, the connection closes.
        keep_alive: bool,
    },
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// 200 to 599, or 101 in [`Event::Switched`].
    pub status: u16,
    /// The server's version.
    pub version: Version,
    /// Its fields.
    pub fields: Fields<'a>,
    /// How the end of its content is determined.
    pub framing: Framing,
}

/// How the end of a response's content is determined (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no content: replies to HEAD, and 101, 204, 304.
    None,
    /// By its length in bytes.
    Length(u64),
    /// By its last chunk.
    Chunked,
    /// By the end of the connection.
    UntilEnd,
}

/// Why a response cannot be parsed. Later bytes cannot be trusted, so the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed HTTP response: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl From<Fault> for Malformed {
    fn from(fault: Fault) -> Self {
        Malformed(fault.why)
    }
}

#[derive(Debug)]
enum State {
    /// Waits for the end of a head.
    Head(Scan),
    /// Waits for this many bytes of content; then the connection stays open or not.
    Length { left: u64, keep_alive: bool },
    /// Waits for chunks.
    Chunked { chunked: Chunked, keep_alive: bool },
    /// Takes content until the connection closes.
    UntilEnd,
    /// Bytes are no longer interpreted: after an error, after the last response, or after a switch
    /// to another protocol.
    Closed,
}

impl Default for State {
    fn default() -> Self {
        State::Head(Scan::default())
    }
}

impl Decoder {
    /// Takes the next event off the front of `input`. Returns `None` if it is incomplete; the next
    /// call must then pass the remaining `input` again, with more bytes. `asked` is the method of
    /// the request being answered.
    ///
    /// An end may need no bytes, so call this until it returns no event. After an end without
    /// `keep_alive`, after [`Event::Switched`] and after an error, there are no more events, and no
    /// bytes are taken.
    #[inline]
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        asked: Method,
    ) -> Result<Option<Event<'a>>, Malformed> {
        let event = self.take(input, asked);
        if event.is_err() {
            self.state = State::Closed;
        }
        event
    }

    /// Called when the server has closed its sending direction and [`Decoder::next`] returns no
    /// more events. Returns the end of a response that the close completes; `None` after the last
    /// response, after [`Event::Switched`] and after an error.
    ///
    /// # Errors
    /// The close comes within a response, or where the head of the next one must start.
    pub fn end_of_input(&mut self) -> Result<Option<Event<'static>>, Malformed> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::UntilEnd => Ok(Some(Event::End { keep_alive: false })),
            State::Closed => Ok(None),
            State::Head(_) => Err(Malformed("The connection closed before a complete head.")),
            // RFC 9112, section 8: such a message is incomplete.
            State::Length { .. } | State::Chunked { .. } => {
                Err(Malformed("The connection closed before the whole content."))
            }
        }
    }

    #[inline]
    fn take<'a>(
        &mut self,
        input: &mut &'a [u8],
        asked: Method,
    ) -> Result<Option<Event<'a>>, Malformed> {
        loop {
            match &mut self.state {
                State::Head(scan) => {
                    let Some(end) = find_head(scan, input)? else { return Ok(None) };
                    let bytes = take_front(input, end);
                    let head = ResponseHead::read(bytes)?;
                    if head.status == 101 {
                        self.state = State::Closed;
                        return Ok(Some(Event::Switched(head.response(bytes, Framing::None))));
                    }
                    if head.status < 200 {
                        self.skip_interim()?;
                        continue;
                    }
                    self.interim = 0;
                    return Ok(Some(Event::Head(self.begin(head, bytes, asked))));
                }
                &mut State::Length { left: 0, keep_alive } => {
                    return Ok(Some(self.end(keep_alive)));
                }
                State::Length { left, .. } => {
                    let length = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= length as u64;
                    return Ok(content(take_front(input, length)));
                }
                State::Chunked { chunked, keep_alive } => {
                    let keep_alive = *keep_alive;
                    let Some((piece, length)) = chunked.next(input)? else { return Ok(None) };
                    take_front(input, length);
                    match piece {
                        Piece::Data(data) => return Ok(Some(Event::Content(data))),
                        Piece::Framing => {}
                        Piece::End => return Ok(Some(self.end(keep_alive))),
                    }
                }
                State::UntilEnd => return Ok(content(take_front(input, input.len()))),
                State::Closed => return Ok(None),
            }
        }
    }

    fn skip_interim(&mut self) -> Result<(), Malformed> {
        self.interim += 1;
        self.state = State::default();
        if self.interim > MAX_INTERIM {
            return Err(Malformed("There are more than 16 interim responses."));
        }
        Ok(())
    }

    /// Determines the end of the content (RFC 9112, 6.3).
    #[inline]
    fn begin<'a>(&mut self, head: ResponseHead, bytes: &'a [u8], asked: Method) -> Response<'a> {
        let ResponseHead { status, length, chunked, keep_alive, .. } = head;
        let framing = match (chunked, length) {
            _ if asked == Method::Head || matches!(status, 204 | 304) => Framing::None,
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::UntilEnd,
        };
        self.state = match framing {
            Framing::None => State::Length { left: 0, keep_alive },
            Framing::Length(left) => State::Length { left, keep_alive },
            Framing::Chunked => State::Chunked { chunked: Chunked::default(), keep_alive },
            Framing::UntilEnd => State::UntilEnd,
        };
        head.response(bytes, framing)
    }

    #[inline]
    fn end(&mut self, keep_alive: bool) -> Event<'static> {
        self.state = if keep_alive { State::default() } else { State::Closed };
        Event::End { keep_alive }
    }
}

impl ResponseHead {
    /// Converts the head, parsed from `bytes`, to its public form.
    #[inline]
    fn response(self, bytes: &[u8], framing: Framing) -> Response<'_> {
        let ResponseHead { status, version, fields_at, .. } = self;
        let fields = Fields::new(&bytes[fields_at..bytes.len() - 2]);
        Response { status, version, fields, framing }
    }
}

const LIMITS: Limits = Limits { first_line: MAX_LINE, block: MAX_HEAD };

/// The start of every status line.
const STATUS_LINE_START: &[u8] = b"HTTP/1.";

/// Returns where the head ends, once it is complete. If it can never be, returns its first fault.
#[inline]
fn find_head(scan: &mut Scan, input: &[u8]) -> Result<Option<usize>, Malformed> {
    // Input that is not HTTP may never contain a line end.
    let start = &input[..input.len().min(STATUS_LINE_START.len())];
    if !STATUS_LINE_START.starts_with(start) {
        return Err(Malformed("Expected a status line: HTTP/1.1, three digits, a reason."));
    }
    let line_was_whole = scan.first_line().is_some();
    match scan.end(input, LIMITS) {
        Ok(None) => {
            if let (false, Some(end)) = (line_was_whole, scan.first_line()) {
                ResponseHead::check_lines(&input[..end])?;
            }
            Ok(None)
        }
        Ok(end) => Ok(end),
        Err(broken) => {
            ResponseHead::check_lines(&input[..scan.whole_lines()])?;
            Err(Malformed(match broken {
                Broken::BareLf => LINE_END.why,
                Broken::FirstLineTooLong => "The status line is longer than 8192 bytes.",
                Broken::BlockTooLong => "The head is longer than 16384 bytes.",
            }))
        }
    }
}

fn take_front<'a>(input: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (front, rest) = input.split_at(length);
    *input = rest;
    front
}

fn content(bytes: &[u8]) -> Option<Event<'_>> {
    (!bytes.is_empty()).then_some(Event::Content(bytes))
}
