//! One reply while it arrives: parsed by the codec, and checked as the expectation requires. A reply
//! that arrives in pieces keeps the bytes that the codec still needs, and the content to be checked.

use super::{check, criteria::Criteria, expected::Content};
use crate::{text::cut, time::Nanos};
use regatta_proto::http1::client::{Decoder, Event, Framing, Malformed};
use regatta_record::Exchange;

/// Maximum number of bytes of a reply that are kept for messages.
pub(in crate::dialects) const SHOWN: usize = 1_000;
/// Maximum content buffer capacity that is kept for reuse, in bytes.
const KEPT: usize = 1 << 20;

/// A partially received reply.
#[derive(Debug, Default)]
pub(super) struct Part {
    decoder: Decoder,
    /// Bytes that the decoder needs again.
    unread: Vec<u8>,
    /// The part of its content that is checked.
    content: Vec<u8>,
    /// The start of the reply, for messages.
    shown: Vec<u8>,
    /// Length of its head in bytes if the head determines the length of the content; otherwise 0.
    head: usize,
    framing: Option<Framing>,
    /// Its status; 0 until its head is complete.
    status: u16,
    /// The tolerated fault, if any.
    wrong: Option<Fault>,
}

/// A complete reply.
pub(super) struct Whole {
    /// Until when it stays correct.
    pub until: Nanos,
    /// Whether the connection closes after it.
    pub ends: bool,
    /// See [`Part::head`].
    pub head: usize,
}

/// Why a reply is wrong.
#[derive(Debug)]
enum Fault {
    Malformed(Malformed),
    Head,
    Upgrade,
    /// Its content exceeds this maximum number of bytes.
    TooLong(usize),
    /// The content is wrong; holds the start of it.
    Content(String),
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Fault::Malformed(malformed)
    }
}

impl Part {
    /// The start of the reply, for messages.
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Swaps the start of the reply with a buffer kept elsewhere.
    pub fn swap_shown(&mut self, shown: &mut Vec<u8>) {
        std::mem::swap(&mut self.shown, shown);
    }

    /// Resets this for another reply.
    pub fn clear(&mut self) {
        self.decoder = Decoder::default();
        self.unread.clear();
        self.content.clear();
        self.content.shrink_to(KEPT);
        self.shown.clear();
        (self.head, self.framing) = (0, None);
        (self.status, self.wrong) = (0, None);
    }

    /// Its status; 0 until its head is complete.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Reads the reply from the front of `input`. Returns `None` if it is not complete. A wrong reply
    /// that is tolerated is consumed completely before it is reported.
    pub fn read(
        &mut self,
        input: &mut &[u8],
        criteria: Criteria<'_>,
    ) -> Result<Option<Whole>, WrongReply> {
        let data = *input;
        let whole = match (self.take(input, criteria), self.wrong.take()) {
            (Ok(Some(Whole { ends, .. })), Some(fault)) => {
                return Err(WrongReply {
                    whole: Some(ends),
                    ..self.wrong_reply(fault, criteria, data)
                });
            }
            (Err(fault), _) => return Err(self.wrong_reply(fault, criteria, data)),
            (Ok(whole), wrong) => {
                self.wrong = wrong;
                whole
            }
        };
        if whole.is_none() {
            let more = SHOWN.saturating_sub(self.shown.len()).min(data.len());
            self.shown.extend_from_slice(&data[..more]);
        }
        Ok(whole)
    }

    /// Handles the end of the connection. Returns whether it completes the reply: the end of the
    /// connection can delimit the content.
    pub fn end(&mut self, criteria: Criteria<'_>) -> Result<bool, WrongReply> {
        // A truncated reply is missing, not wrong.
        let Ok(Some(_)) = self.decoder.end_of_input() else { return Ok(false) };
        match self.wrong.take().map_or_else(|| criteria.content(&self.content), Err) {
            Ok(_) => Ok(true),
            Err(fault) => Err(WrongReply::new(fault, criteria, &self.shown)),
        }
    }

    /// Describes a wrong reply; `data` are the last bytes received of it.
    #[cold]
    fn wrong_reply(&mut self, fault: Fault, criteria: Criteria<'_>, data: &[u8]) -> WrongReply {
        let mut shown = std::mem::take(&mut self.shown);
        shown.extend_from_slice(&data[..data.len().min(SHOWN)]);
        WrongReply::new(fault, criteria, &shown)
    }

    /// Records a fault that is tolerated; the rest of the reply is then not checked. Returns any other
    /// fault.
    #[cold]
    fn fails(&mut self, fault: Fault, criteria: Criteria<'_>) -> Result<(), Fault> {
        if !criteria.tolerates {
            return Err(fault);
        }
        self.wrong = Some(fault);
        Ok(())
    }

    /// Consumes the reply's bytes from the front of `input`; all of `input` if the reply is not
    /// complete.
    fn take(&mut self, input: &mut &[u8], criteria: Criteria<'_>) -> Result<Option<Whole>, Fault> {
        if self.unread.is_empty() {
            let whole = self.decode(input, criteria)?;
            if whole.is_none() {
                self.unread.extend_from_slice(input);
                *input = &[];
            }
            return Ok(whole);
        }
        let mut bytes = std::mem::take(&mut self.unread);
        bytes.extend_from_slice(input);
        let mut left = &bytes[..];
        let whole = self.decode(&mut left, criteria)?;
        let left = left.len();
        if whole.is_some() {
            *input = &input[input.len() - left..];
            bytes.clear();
        } else {
            *input = &[];
            bytes.drain(..bytes.len() - left);
        }
        self.unread = bytes;
        Ok(whole)
    }

    fn decode(
        &mut self,
        input: &mut &[u8],
        criteria: Criteria<'_>,
    ) -> Result<Option<Whole>, Fault> {
        let any = matches!(criteria.expected.content, Content::Any);
        let begin = input.len();
        // Until when content that was checked in place stays correct.
        let mut seen = None;
        while let Some(event) = self.decoder.next(input, criteria.expected.method)? {
            match event {
                Event::Switched(_) => return Err(Fault::Upgrade),
                Event::Head(response) => {
                    let framing = response.framing;
                    (self.framing, self.status) = (Some(framing), response.status);
                    if matches!(framing, Framing::None | Framing::Length(_)) {
                        self.head = begin - input.len();
                    }
                    if !check::head(
                        criteria.expected,
                        response.status,
                        || response.fields.iter(),
                        criteria.text,
                    ) {
                        self.fails(Fault::Head, criteria)?;
                    }
                }
                Event::Content(_) if any || self.wrong.is_some() => {}
                Event::Content(piece) => match self.check_or_keep(piece, criteria) {
                    Ok(until) => seen = until,
                    Err(fault) => self.fails(fault, criteria)?,
                },
                Event::End { keep_alive } => {
                    let until = match seen {
                        Some(until) => until,
                        None if self.wrong.is_some() => 0,
                        None => match criteria.content(&self.content) {
                            Ok(until) => until,
                            Err(fault) => {
                                self.fails(fault, criteria)?;
                                0
                            }
                        },
                    };
                    return Ok(Some(Whole { until, ends: !keep_alive, head: self.head }));
                }
            }
        }
        Ok(None)
    }

    /// Checks a piece that is the whole content according to Content-Length, and returns until when it
    /// stays correct. Of any other piece, keeps the bytes that are checked later, and returns `None`.
    fn check_or_keep(
        &mut self,
        piece: &[u8],
        criteria: Criteria<'_>,
    ) -> Result<Option<Nanos>, Fault> {
        if self.framing == Some(Framing::Length(piece.len() as u64)) {
            return criteria.content(piece).map(Some);
        }
        let (expected, text) =
            (&criteria.expected.content, criteria.expected.parts(criteria.text).content);
        let longest = expected.longest(text);
        if piece.len() > longest - self.content.len() {
            return Err(Fault::TooLong(longest));
        }
        let more = expected.checked_bytes(text) - self.content.len();
        self.content.extend_from_slice(&piece[..piece.len().min(more)]);
        Ok(None)
    }
}

impl Criteria<'_> {
    /// Returns until when the content stays correct.
    fn content(self, data: &[u8]) -> Result<Nanos, Fault> {
        let until = check::content(self, data);
        until.ok_or_else(|| Fault::Content(cut(data, SHOWN)))
    }
}

/// A wrong reply, described except for its request.
pub(super) struct WrongReply {
    expected: String,
    received: String,
    is_malformed: bool,
    /// `None` if the reply is not complete; otherwise whether the connection closes after it.
    pub whole: Option<bool>,
}

impl WrongReply {
    /// `shown` is the start of the reply.
    #[cold]
    fn new(fault: Fault, criteria: Criteria<'_>, shown: &[u8]) -> Self {
        let began = cut(shown, SHOWN);
        let is_malformed = matches!(fault, Fault::Malformed(_));
        let received = match fault {
            Fault::Malformed(malformed) => format!("{began} ({malformed})"),
            Fault::Head => began,
            Fault::Upgrade => format!("{began} (101 switches to a protocol other than HTTP)"),
            Fault::TooLong(most) => format!("{began} (more than {most} bytes of content)"),
            Fault::Content(content) => format!("the content {content}, in {began}"),
        };
        WrongReply {
            expected: criteria.expected.in_words(criteria.text),
            received,
            is_malformed,
            whole: None,
        }
    }

    /// Adds the previous reply, `last`, if it is known: bytes that are not HTTP may belong to that
    /// reply, if its length was wrong.
    #[cold]
    pub fn after(mut self, last: &[u8]) -> Self {
        if self.is_malformed {
            self.received += &describe_previous_reply(last);
        }
        self
    }

    #[cold]
    pub fn of_request(self, request: &[u8], reply_index: u32) -> Box<Exchange> {
        let WrongReply { expected, received, .. } = self;
        let sent = cut(request, SHOWN);
        Exchange { sent, expected, received, reply_index: reply_index.into() }.into()
    }
}

/// Describes the reply before bytes that are not HTTP; empty if that reply is not known.
pub(super) fn describe_previous_reply(last: &[u8]) -> String {
    match last {
        [] => String::new(),
        reply => format!("; the reply before it was {}", cut(reply, SHOWN)),
    }
}
