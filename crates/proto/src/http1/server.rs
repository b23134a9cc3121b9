//! The server end: bytes → requests.

use super::{
    Body, Date, Fault, Fields, MAX_BODY, MAX_HEAD, MAX_LINE, Method, Reply, Status, Terms, Version,
    chunked::{Chunked, Piece},
    head::{LINE_END, RequestHead},
    scan::{Broken, Limits, Scan},
    target,
};

/// Finds the requests of one connection.
///
/// The caller hands it all bytes from the first one that no event has taken yet, and more of them
/// after `None`. It keeps how far it has come, so a request that comes in many pieces is searched
/// once; of bytes it keeps none but one short head, which many clients send again and again.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    memo: Memo,
}

/// What came.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A whole request: it is owed a reply.
    Request(Request<'a>),
    /// The client waits with the content of its request until it is sent [`super::CONTINUE`].
    /// No bytes are taken.
    Continue,
    /// A request that is refused: it is owed [`Rejection::write`], then the connection is closed.
    /// What follows is never looked at.
    Rejected(Rejection),
}

/// A request, content included. It borrows from the input.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its method.
    pub method: Method,
    /// Its target as it was sent: a path, `http://…`, or `*`.
    pub target: &'a str,
    /// Its fields.
    pub fields: Fields<'a>,
    /// Its content, [`MAX_BODY`] bytes at most.
    pub body: Body<'a>,
    /// What it asks of the form of its reply.
    pub terms: Terms,
}

impl<'a> Request<'a> {
    /// The target's path, not decoded. `/` if it has none, `*` for `*`.
    #[inline]
    pub fn path(&self) -> &'a str {
        self.path_and_query().0
    }

    /// What follows the `?` of the target.
    #[inline]
    pub fn query(&self) -> Option<&'a str> {
        self.path_and_query().1
    }

    /// Both at once.
    #[inline]
    pub fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        target::path_and_query(self.target)
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The rule that it breaks, and the status for that.
    pub fault: Fault,
    head_only: bool,
}

impl Rejection {
    /// Appends the reply: the status and a sentence, and that the connection is closed.
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
    /// Nothing is interpreted any more: a request was refused, or asked for the end.
    Closed,
}

impl Default for State {
    fn default() -> Self {
        State::Head(Scan::default())
    }
}

impl Decoder {
    /// The event at the front of `input` and how many bytes it takes; `None` if more must come.
    /// After a request whose terms do not keep the connection alive, and after a rejection, there
    /// are no more events.
    #[inline]
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Option<(Event<'a>, usize)> {
        match self.next(input) {
            Ok(event) => event,
            Err(fault) => {
                self.state = State::Closed;
                let head_only = input[empty_line(input)..].starts_with(b"HEAD ");
                Some((Event::Rejected(Rejection { fault, head_only }), input.len()))
            }
        }
    }

    #[inline]
    fn next<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Event<'a>, usize)>, Fault> {
        if let State::Head(scan) = &mut self.state {
            let pending = match self.memo.recognise(input) {
                Some(head) => Pending::new(head, 0, self.memo.bytes.len())?,
                None => {
                    let Some(pending) = read_head(scan, input)? else { return Ok(None) };
                    self.memo.learn(&pending, input);
                    pending
                }
            };
            self.state = State::Content(pending);
        }
        let State::Content(pending) = &mut self.state else { return Ok(None) };
        if std::mem::take(&mut pending.owes_continue) {
            return Ok(Some((Event::Continue, 0)));
        }
        let Some(end) = pending.content.end(input)? else { return Ok(None) };
        let request = pending.request(input, end)?;
        self.state = match request.terms.keep_alive {
            true => State::default(),
            false => State::Closed,
        };
        Ok(Some((Event::Request(request), end)))
    }
}

/// The last head that was accepted. What the same bytes mean is known already.
#[derive(Debug, Default)]
struct Memo {
    bytes: Vec<u8>,
    head: Option<RequestHead>,
    /// There was a head before: who asks once only is not worth remembering.
    follows: bool,
}

impl Memo {
    /// Longest head that is kept, in bytes.
    const MOST: usize = 512;

    /// The head in front of `input`, if it is that one.
    #[inline]
    fn recognise(&self, input: &[u8]) -> Option<RequestHead> {
        self.head.filter(|_| input.starts_with(&self.bytes))
    }

    /// This one was read, and accepted.
    #[inline]
    fn learn(&mut self, pending: &Pending, input: &[u8]) {
        if !std::mem::replace(&mut self.follows, true) || pending.head_end > Self::MOST {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&input[..pending.head_end]);
        self.head = (pending.head_start == 0).then_some(pending.head);
    }
}

const LIMITS: Limits = Limits { first_line: MAX_LINE, block: MAX_HEAD };

/// Bytes of the empty line in front of a request: a server should ignore at least one
/// (RFC 9112, 2.2), and ours ignores one.
fn empty_line(input: &[u8]) -> usize {
    if input.starts_with(b"\r\n") { 2 } else { 0 }
}

/// Reads a head once it is whole.
///
/// If one can never be whole, the first fault in the lines before is told, so that it does not
/// depend on how the bytes were cut. The request line is looked at as soon as it is there.
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
            let head = RequestHead::read(&input[..end])?;
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

/// A request whose head was accepted, while its content comes.
#[derive(Debug)]
struct Pending {
    head: RequestHead,
    /// Where the head begins in the input, and where it ends.
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

    #[inline]
    fn request<'a>(&self, input: &'a [u8], end: usize) -> Result<Request<'a>, Fault> {
        let head = &input[self.head_start..self.head_end];
        let RequestHead { method, version, target_end, chunked, keep_alive, .. } = self.head;
        let target = &head[method.as_str().len() + 1..target_end];
        let fields = &head[target_end + 1 + Version::LEN + 2..head.len() - 2];
        Ok(Request {
            method,
            target: std::str::from_utf8(target)
                .map_err(|_| Fault::bad("The target is no text."))?,
            fields: Fields::new(fields),
            body: Body::new(&input[self.head_end..end], chunked),
            terms: Terms { version, head_only: method == Method::Head, keep_alive },
        })
    }
}

/// Where a content ends.
#[derive(Debug)]
enum Content {
    /// There.
    EndsAt(usize),
    /// Where its chunks say; they are read up to `at`.
    Chunked { chunked: Chunked, at: usize, head_end: usize },
}

impl Content {
    /// The place in the input, once all has come.
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

const TOO_LARGE: Fault =
    Fault::new(Status::ContentTooLarge, "The content is longer than 65536 bytes.");
