//! The server side: bytes → requests.

use super::{
    Body, Date, Fault, Fields, MAX_BODY, MAX_HEAD, MAX_LINE, Method, Reply, Status, Terms, Version,
    chunked::{Chunked, Piece},
    head::{LINE_END, RequestHead},
    parser,
    scan::{Broken, Limits, Scan},
    target::Split,
};
use crate::block::text;

/// Finds the requests of one connection.
///
/// The caller passes all bytes not yet taken by an event. After `None`, it passes them again with
/// more bytes behind them. The decoder remembers how far it has searched, so a request that arrives
/// in many pieces is searched once. It keeps no bytes except those of one head that may be repeated:
/// see [`Decoder::decode`].
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    memo: Memo,
}

/// A request, or another event of the connection.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A complete request. It must be answered.
    Request(Request<'a>),
    /// The client sends the content of its request only after [`super::CONTINUE`]. No bytes are
    /// taken.
    Continue,
    /// A refused request. Answer it with [`Rejection::write`], then close the connection. Bytes
    /// after the request are never interpreted.
    Rejected(Rejection),
}

/// A request with its content. It borrows from the input.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its method.
    pub method: Method,
    /// Its target as sent: a path, `http://…`, or `*`.
    pub target: &'a str,
    /// Its fields.
    pub fields: Fields<'a>,
    /// Its content, at most [`MAX_BODY`] bytes.
    pub body: Body<'a>,
    /// What it requires of its reply's form.
    pub terms: Terms,
    /// The client asks to switch to a protocol named in its Upgrade field (RFC 9110, 7.8): Upgrade
    /// is not empty, Connection contains `upgrade`, and the version is 1.1. A server may ignore it.
    /// A server that switches sends [`Reply::switching`] and never calls [`Decoder::decode`] again,
    /// because the bytes after the request are not HTTP.
    pub wants_upgrade: bool,
    split: Split,
}

impl<'a> Request<'a> {
    /// The target's path, not decoded. `/` if it is missing, `*` for `*`.
    #[inline]
    pub fn path(&self) -> &'a str {
        self.path_and_query().0
    }

    /// The target's text after `?`.
    #[inline]
    pub fn query(&self) -> Option<&'a str> {
        self.path_and_query().1
    }

    /// The path and the query.
    #[inline]
    pub fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        self.split.path_and_query(self.target)
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The violated rule, and its status.
    pub fault: Fault,
    head_only: bool,
}

impl Rejection {
    /// Appends the reply: the status, a sentence, and `Connection: close`.
    pub fn write(&self, date: &Date, out: &mut Vec<u8>) {
        let terms =
            Terms { version: Version::Http11, head_only: self.head_only, keep_alive: false };
        Reply::text(self.fault.status, self.fault.why.as_bytes()).write(terms, date, out);
    }
}

#[derive(Debug)]
enum State {
    /// Waits for the end of a head.
    Head(Scan),
    /// Waits for the end of the content.
    Content(Pending),
    /// Nothing is interpreted any longer: a request was refused, or was the last one.
    Closed,
}

impl Default for State {
    fn default() -> Self {
        State::Head(Scan::default())
    }
}

impl State {
    /// Returns whether it waits for a head and has not searched any bytes.
    #[inline]
    fn is_new(&self) -> bool {
        matches!(self, State::Head(scan) if scan.is_new())
    }
}

impl Decoder {
    /// Returns the event at the front of `input` and the number of bytes it takes; `None` if it is
    /// incomplete. After a request whose terms do not keep the connection alive, and after a
    /// rejection, there are no more events.
    ///
    /// The cost depends on the head. A complete head is parsed in one pass. The decoder also
    /// remembers one head. A head that repeats it is compared and not parsed. This costs about a
    /// third as much for 40 bytes, and a quarter for 300 bytes (`examples/http1_speed.rs`). So a
    /// benchmark that repeats one request measures the comparison, not the parser. Clients with
    /// varying heads pay for the parser, and for a comparison that fails at the first difference. A
    /// head that is malformed or arrives in pieces is parsed more than once.
    #[inline(always)]
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Option<(Event<'a>, usize)> {
        match self.repeated(input) {
            Some((request, length)) => Some((Event::Request(request), length)),
            None => self.unknown(input),
        }
    }

    /// Returns the request at the front of `input` if its head is the remembered one, without
    /// content, and keeps the connection alive. Inlined, so that a caller only pays for the parts
    /// it uses.
    #[inline(always)]
    fn repeated<'a>(&self, input: &'a [u8]) -> Option<(Request<'a>, usize)> {
        let head = self.memo.head.as_ref().filter(|_| self.memo.is_plain)?;
        let end = self.memo.bytes.len();
        if !input.starts_with(&self.memo.bytes) || !self.state.is_new() {
            return None;
        }
        Some((request(head, &input[..end], &[])?, end))
    }

    #[inline(never)]
    fn unknown<'a>(&mut self, input: &'a [u8]) -> Option<(Event<'a>, usize)> {
        // This happens after the last request of each read.
        if input.is_empty() {
            return None;
        }
        match self.whole(input) {
            Some((request, length)) => Some((Event::Request(request), length)),
            None => self.carefully(input),
        }
    }

    /// Returns the request at the front of `input` if it is complete, well-formed, not chunked, not
    /// preceded by an empty line, and does not wait for [`super::CONTINUE`].
    #[inline]
    fn whole<'a>(&mut self, input: &'a [u8]) -> Option<(Request<'a>, usize)> {
        if !self.state.is_new() {
            return None;
        }
        let read;
        let (head, head_end) = match self.memo.recognise(input) {
            Some(known) => known,
            None => {
                let (head, end) = parser::read(input)?;
                read = head;
                self.memo.learn(&read, &input[..end]);
                (&read, end)
            }
        };
        let content = match head.length {
            _ if head.chunked => None,
            None => Some(0),
            Some(length) if length > 0 && head.awaits_continue => None,
            Some(length) => usize::try_from(length).ok().filter(|&length| length <= MAX_BODY),
        };
        let Some(end) = content.map(|length| head_end + length).filter(|&end| end <= input.len())
        else {
            self.state = State::Content(Pending::new(*head, 0, head_end).ok()?);
            return None;
        };
        if !head.keep_alive {
            self.state = State::Closed;
        }
        Some((request(head, &input[..head_end], &input[head_end..end])?, end))
    }

    /// Returns the event at the front of `input`, of any kind, step by step.
    #[inline(never)]
    fn carefully<'a>(&mut self, input: &'a [u8]) -> Option<(Event<'a>, usize)> {
        match self.next(input) {
            Ok(event) => event,
            Err(fault) => {
                self.state = State::Closed;
                let head_only = input[empty_line(input)..].starts_with(b"HEAD ");
                Some((Event::Rejected(Rejection { fault, head_only }), input.len()))
            }
        }
    }

    fn next<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Event<'a>, usize)>, Fault> {
        if let State::Head(scan) = &mut self.state {
            let Some(pending) = read_head(scan, input)? else { return Ok(None) };
            self.state = State::Content(pending);
        }
        let State::Content(pending) = &mut self.state else { return Ok(None) };
        if std::mem::take(&mut pending.owes_continue) {
            return Ok(Some((Event::Continue, 0)));
        }
        let Some(end) = pending.content.end(input)? else { return Ok(None) };
        let Pending { head, head_start, head_end, .. } = pending;
        let (bytes, content) = (&input[*head_start..*head_end], &input[*head_end..end]);
        let request =
            request(head, bytes, content).ok_or(Fault::bad("The target is not UTF-8."))?;
        self.state = match request.terms.keep_alive {
            true => State::default(),
            false => State::Closed,
        };
        Ok(Some((Event::Request(request), end)))
    }
}

/// Builds the request from `head`, which was parsed from `bytes`, and its content.
#[inline]
fn request<'a>(head: &RequestHead, bytes: &'a [u8], content: &'a [u8]) -> Option<Request<'a>> {
    let &RequestHead { method, version, target_end, split, keep_alive, .. } = head;
    let target_end = usize::from(target_end);
    let fields = &bytes[target_end + 1 + Version::LEN + 2..bytes.len() - 2];
    Some(Request {
        method,
        target: text(bytes, method.as_str().len() + 1, target_end)?,
        fields: Fields::new(fields),
        body: Body::new(content, head.chunked),
        terms: Terms { version, head_only: method == Method::Head, keep_alive },
        wants_upgrade: head.wants_upgrade,
        split,
    })
}

/// One accepted head with its meaning. The same bytes have the same meaning.
///
/// The memo helps if heads are repeated. It gains nothing if every head is new, and little if a
/// client alternates between a few heads, because it holds one.
#[derive(Debug, Default)]
struct Memo {
    bytes: Vec<u8>,
    head: Option<RequestHead>,
    /// The request has no content, and the connection stays open after it.
    is_plain: bool,
    /// Number of heads that were not recognised. It wraps.
    unknown: u8,
}

impl Memo {
    /// Maximum length of a remembered head, in bytes.
    const MOST: usize = 512;

    /// One in this many unknown heads is remembered, starting with the second. The first is not,
    /// because many clients send one request. Most others are not, because a client with varying
    /// heads would pay for copies that are never used.
    const EVERY: u8 = 16;

    /// Returns the remembered head and its length in bytes, if `input` starts with it.
    #[inline]
    fn recognise(&self, input: &[u8]) -> Option<(&RequestHead, usize)> {
        let head = self.head.as_ref()?;
        input.starts_with(&self.bytes).then_some((head, self.bytes.len()))
    }

    /// Records that `head` was parsed from `bytes`, and remembers it if it is due.
    #[inline]
    fn learn(&mut self, head: &RequestHead, bytes: &[u8]) {
        self.unknown = self.unknown.wrapping_add(1);
        if self.unknown % Self::EVERY == 2 && bytes.len() <= Self::MOST {
            self.keep(head, bytes);
        }
    }

    #[cold]
    fn keep(&mut self, head: &RequestHead, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.head = Some(*head);
        self.is_plain =
            head.keep_alive && !head.chunked && head.length.is_none_or(|length| length == 0);
    }
}

const LIMITS: Limits = Limits { first_line: MAX_LINE, block: MAX_HEAD };

/// Returns the length of the empty line before a request: a server should ignore at least one (RFC
/// 9112, 2.2); this one ignores one.
fn empty_line(input: &[u8]) -> usize {
    if input.starts_with(b"\r\n") { 2 } else { 0 }
}

/// Parses a head once it is complete.
///
/// If it can never be complete, returns the first fault in the lines so far, so that the fault does
/// not depend on how the bytes were split. The request line is checked as soon as it is complete.
#[inline]
fn read_head(scan: &mut Scan, input: &[u8]) -> Result<Option<Pending>, Fault> {
    let start = empty_line(input);
    let input = &input[start..];
    match *input {
        [] => return Ok(None),
        [b'\r'] if start == 0 => return Ok(None),
        _ => RequestHead::check_start(input)?,
    }
    let line_was_whole = scan.first_line().is_some();
    match scan.end(input, LIMITS) {
        Ok(Some(end)) => {
            let head = match parser::read(&input[..end]) {
                Some((head, _)) => head,
                None => RequestHead::read(&input[..end])?,
            };
            Pending::new(head, start, start + end).map(Some)
        }
        Ok(None) => {
            if let (false, Some(end)) = (line_was_whole, scan.first_line()) {
                RequestHead::check_lines(&input[..end])?;
            }
            Ok(None)
        }
        Err(broken) => {
            RequestHead::check_lines(&input[..scan.whole_lines()])?;
            Err(match broken {
                Broken::BareLf => LINE_END,
                Broken::FirstLineTooLong => RequestHead::too_long(&input[..MAX_LINE]),
                Broken::BlockTooLong => {
                    Fault::new(Status::FieldsTooLarge, "The head is longer than 16384 bytes.")
                }
            })
        }
    }
}

/// A request whose head was accepted and whose content is still arriving.
#[derive(Debug)]
struct Pending {
    head: RequestHead,
    /// Where the head starts and ends in the input.
    head_start: usize,
    head_end: usize,
    content: Content,
    owes_continue: bool,
}

impl Pending {
    #[inline]
    fn new(head: RequestHead, head_start: usize, head_end: usize) -> Result<Self, Fault> {
        let content = match (head.chunked, head.length) {
            (true, _) => Content::Chunked { chunked: Chunked::default(), at: head_end, head_end },
            // RFC 9112, 6.3, rule 7: without either there is no content.
            (false, None) => Content::EndsAt(head_end),
            (false, Some(length)) => match usize::try_from(length) {
                Ok(length) if length <= MAX_BODY => Content::EndsAt(head_end + length),
                _ => return Err(TOO_LARGE),
            },
        };
        let has_content = !matches!(content, Content::EndsAt(end) if end == head_end);
        let owes_continue = head.awaits_continue && has_content;
        Ok(Pending { head, head_start, head_end, content, owes_continue })
    }
}

/// How the end of the content is determined.
#[derive(Debug)]
enum Content {
    /// At this position.
    EndsAt(usize),
    /// By its chunks, which are decoded up to `at`.
    Chunked { chunked: Chunked, at: usize, head_end: usize },
}

impl Content {
    /// Returns the position in the input, once the content is complete.
    #[inline]
    fn end(&mut self, input: &[u8]) -> Result<Option<usize>, Fault> {
        match self {
            Content::EndsAt(end) => Ok((*end <= input.len()).then_some(*end)),
            Content::Chunked { chunked, at, head_end } => {
                while let Some((piece, length)) = chunked.next(&input[*at..])? {
                    *at += length;
                    if piece == Piece::End {
                        return Ok(Some(*at));
                    }
                    let length = ((*at - *head_end) as u64).saturating_add(chunked.left());
                    if length > MAX_BODY as u64 {
                        return Err(TOO_LARGE);
                    }
                }
                Ok(None)
            }
        }
    }
}

const TOO_LARGE: Fault = Fault::CONTENT_TOO_LARGE;

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str) -> (RequestHead, Vec<u8>) {
        let bytes = format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        (parser::read(&bytes).unwrap().0, bytes)
    }

    #[test]
    fn remembers_the_second_head_and_then_every_sixteenth() {
        let mut memo = Memo::default();
        let mut remembered = Vec::new();
        for n in 1..=50 {
            let (head, bytes) = head(&n.to_string());
            assert!(memo.recognise(&bytes).is_none());
            memo.learn(&head, &bytes);
            if let Some((known, length)) = memo.recognise(&bytes) {
                assert_eq!((*known, length), (head, bytes.len()));
                remembered.push(n);
            }
        }
        assert_eq!(remembered, [2, 18, 34, 50]);
    }

    #[test]
    fn recognises_a_head_followed_by_more_bytes_but_no_prefix_of_it() {
        let (head, bytes) = head("a");
        let mut memo = Memo::default();
        memo.learn(&head, &bytes);
        memo.learn(&head, &bytes);
        assert_eq!(memo.recognise(&bytes.repeat(2)), Some((&head, bytes.len())));
        for cut in 0..bytes.len() {
            assert!(memo.recognise(&bytes[..cut]).is_none());
        }
    }

    #[test]
    fn does_not_remember_long_heads() {
        let empty = head("").1.len();
        for (length, remembered) in [(Memo::MOST, true), (Memo::MOST + 1, false)] {
            let (head, bytes) = head(&"a".repeat(length - empty));
            let mut memo = Memo::default();
            memo.learn(&head, &bytes);
            memo.learn(&head, &bytes);
            assert_eq!((bytes.len(), memo.recognise(&bytes).is_some()), (length, remembered));
        }
    }
}
