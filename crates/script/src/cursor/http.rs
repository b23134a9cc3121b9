//! The third way to check replies: HTTP/1.1. A reply that is the same as one before is compared as
//! memory; others are read by the codec's client end. One that comes in pieces keeps what the codec
//! still needs, and of its content what is to be looked at.

use super::{Cursor, cut};
use crate::{
    http::{self, Checker, Content, Expected, Replies, Right},
    script::Script,
    time::Nanos,
};
use regatta_proto::http1::client::{Decoder, Event, Framing, Malformed};
use regatta_record::Exchange;
use std::ops::Range;

/// Bytes of a reply that are kept to be told.
const SHOWN: usize = 1_000;
/// Room for contents that is not given back to the system.
const KEPT: usize = 1 << 20;

/// A reply of which the end has not come.
#[derive(Debug, Default)]
pub(crate) struct Part {
    decoder: Decoder,
    /// Bytes that the decoder wants to see again.
    unread: Vec<u8>,
    /// Of its content, what is to be looked at.
    content: Vec<u8>,
    /// How it begins.
    shown: Vec<u8>,
    /// Bytes of its head, where that tells the length of the content; else 0.
    head: usize,
    framing: Option<Framing>,
}

impl Part {
    /// Exchanges what is kept of the reply's beginning.
    pub fn swap_shown(&mut self, shown: &mut Vec<u8>) {
        std::mem::swap(&mut self.shown, shown);
    }

    /// Ready for another reply.
    pub fn clear(&mut self) {
        self.decoder = Decoder::default();
        self.unread.clear();
        self.content.clear();
        self.content.shrink_to(KEPT);
        self.shown.clear();
        (self.head, self.framing) = (0, None);
    }
}

/// What a reply is checked against.
#[derive(Clone, Copy)]
struct Due<'a> {
    kind: u16,
    expected: &'a Expected,
    text: &'a [u8],
    now: Nanos,
}

/// A whole reply that was right.
struct Whole {
    /// Until when it stays so.
    until: Nanos,
    ends: bool,
}

/// What is wrong with a reply.
enum Fault {
    Malformed(Malformed),
    Head,
    Upgrade,
    /// It has more bytes of content than it can have.
    TooLong(usize),
    /// The content, to be told.
    Content(String),
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Fault::Malformed(malformed)
    }
}

impl Cursor {
    /// Takes bytes that came and returns how many replies they complete; then [`Cursor::ends`] tells
    /// whether the server goes on. On `Err` the connection is of no more use; the index of the reply
    /// counts from this call on.
    pub fn receive_http(
        &mut self,
        bytes: &[u8],
        script: &Script,
        replies: &Replies,
        checker: &mut Checker,
        now: Nanos,
    ) -> Result<u32, Box<Exchange>> {
        let owed_to = self.begun_exchanges(script);
        let (before, mut rest) = (self.answered, bytes);
        let mut last = Last { begun: self.reply.is_some(), at: 0..0 };
        while !rest.is_empty() {
            let at = self.answered;
            if at >= owed_to || self.ends {
                let Some(told) = self.unasked(rest, script) else { break };
                return Err(told.after(&last, bytes, checker).of_reply(at - before));
            }
            let begins = bytes.len() - rest.len();
            let due = Due::of(at, script, replies, now);
            let known = match self.reply {
                None => checker.recognise(rest, due.kind, due.expected, due.text, now),
                Some(_) => None,
            };
            let whole = match known {
                Some((length, ends)) => {
                    rest = &rest[length..];
                    Some(ends)
                }
                None => match self.read(&mut rest, due, checker) {
                    Ok(whole) => whole,
                    Err(told) => {
                        let told = told.to(script.request(at)).after(&last, bytes, checker);
                        return Err(told.of_reply(at - before));
                    }
                },
            };
            let Some(ends) = whole else { break };
            last.at = begins..bytes.len() - rest.len();
            self.answered += 1;
            self.ends = ends;
        }
        let complete = self.answered - before;
        if complete > 0 {
            self.checked_to = script.begin(self.answered).reply;
            if self.answered >= script.count() {
                self.wrap(script);
            }
        }
        Ok(complete)
    }

    /// The server ended its sending direction. Returns whether that completes a reply: one may end
    /// with its connection.
    pub fn end_http(
        &mut self,
        script: &Script,
        replies: &Replies,
        checker: &mut Checker,
        now: Nanos,
    ) -> Result<bool, Box<Exchange>> {
        let Some(mut part) = self.reply.take() else { return Ok(false) };
        // What was cut off is missing, not wrong.
        let Ok(Some(_)) = part.decoder.end_of_input() else { return Ok(false) };
        let due = Due::of(self.answered, script, replies, now);
        if let Err(fault) = due.content(&part.content, checker) {
            let told = Told::new(fault, due, &part.shown);
            return Err(told.to(script.request(self.answered)).of_reply(0));
        }
        checker.give_back(part);
        self.answered += 1;
        self.ends = true;
        self.checked_to = script.begin(self.answered).reply;
        if self.answered >= script.count() {
            self.wrap(script);
        }
        Ok(true)
    }

    /// Whether the server said that the connection ends with what came.
    #[inline]
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// Where everything asked has its reply: what the server still owes, if the last request said that
    /// the connection ends with its reply, and the server did not end it (RFC 9112, 9.6).
    pub fn owes_end(&self, script: &Script) -> Option<Exchange> {
        script.replies_in_http()?;
        let last = (self.asked + script.count()).checked_sub(1)? % script.count();
        let request = script.request(last);
        let head = request.split(|byte| *byte == b'\n').take_while(|line| *line != b"\r");
        let says_so = |line: &[u8]| line.eq_ignore_ascii_case(b"connection: close\r");
        (self.owed() == 0 && head.into_iter().any(says_so)).then(|| Exchange {
            sent: cut(request, SHOWN),
            expected: "the server to close the connection after its reply, as the request asks \
                       (RFC 9112, 9.6)"
                .into(),
            received: "the reply, and no end of the connection within a second".into(),
            reply_index: 0,
        })
    }

    /// First exchange to which no reply may come yet. A reply may come before its request is written
    /// to the end: a server need not read a content that it has no use for.
    #[inline]
    fn begun_exchanges(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        let whole = self.whole_asked(script);
        whole + u32::from(self.written_to > script.begin(whole).request)
    }

    /// Reads a reply by the codec, off the front of `input`. `None` if its end has not come.
    fn read(
        &mut self,
        input: &mut &[u8],
        due: Due<'_>,
        checker: &mut Checker,
    ) -> Result<Option<bool>, Told> {
        let is_new = self.reply.is_none();
        let mut part = self.reply.take().unwrap_or_else(|| checker.room());
        let came = *input;
        let step = part.take(input, due, checker);
        let step = step.map_err(|fault| {
            let mut shown = std::mem::take(&mut part.shown);
            shown.extend_from_slice(&came[..came.len().min(SHOWN)]);
            Told::new(fault, due, &shown)
        })?;
        let Some(Whole { until, ends }) = step else {
            let more = SHOWN.saturating_sub(part.shown.len()).min(came.len());
            part.shown.extend_from_slice(&came[..more]);
            self.reply = Some(part);
            return Ok(None);
        };
        if is_new {
            let bytes = &came[..came.len() - input.len()];
            let right = Right { bytes, head: part.head, text: due.text, until, ends };
            checker.learn(right, due.kind, due.expected);
        }
        checker.give_back(part);
        Ok(Some(ends))
    }

    /// Bytes that no request is to be thanked for: wrong, unless a server says that it has waited
    /// for a request long enough (RFC 9110, 15.5.9).
    #[cold]
    fn unasked(&mut self, bytes: &[u8], script: &Script) -> Option<Told> {
        let gives_up = [&b"HTTP/1.1 408 "[..], b"HTTP/1.0 408 "];
        if !self.ends && self.owed() == 0 && gives_up.iter().any(|line| bytes.starts_with(line)) {
            self.ends = true;
            return None;
        }
        let Exchange { sent, mut expected, mut received, .. } =
            self.unasked_for(script, 0, cut(bytes, SHOWN));
        let malformed = Decoder::default().next(&mut &*bytes, http::Method::Get).err();
        if self.ends {
            expected =
                "nothing more: the reply before said that the connection ends with it".into();
        } else if let Some(malformed) = &malformed {
            received = format!("{received} ({malformed})");
        }
        Some(Told { sent, expected, received, is_malformed: malformed.is_some() })
    }

    /// The reply of which only a part came.
    pub(super) fn unfinished_http(
        &self,
        script: &Script,
        replies: &Replies,
        before: u64,
    ) -> Option<Exchange> {
        let part = self.reply.as_ref()?;
        let due = Due::of(self.answered, script, replies, 0);
        Some(Exchange {
            sent: cut(script.request(self.answered), SHOWN),
            expected: due.expected.in_words(due.text),
            received: cut(&part.shown, SHOWN),
            reply_index: before,
        })
    }
}

impl<'a> Due<'a> {
    #[inline]
    fn of(at: u32, script: &'a Script, replies: &'a Replies, now: Nanos) -> Self {
        let kind = replies.of[at as usize];
        let expected = &replies.kinds[usize::from(kind)];
        Due { kind, expected, text: script.reply(at), now }
    }

    fn content(self, came: &[u8], checker: &Checker) -> Result<Nanos, Fault> {
        let until = checker.content(self.expected, came, self.text, self.now);
        until.ok_or_else(|| Fault::Content(cut(came, SHOWN)))
    }
}

impl Part {
    /// Takes the reply's bytes off the front of `input`; all of them if its end has not come.
    fn take(
        &mut self,
        input: &mut &[u8],
        due: Due<'_>,
        checker: &Checker,
    ) -> Result<Option<Whole>, Fault> {
        if self.unread.is_empty() {
            let whole = self.decode(input, due, checker)?;
            if whole.is_none() {
                self.unread.extend_from_slice(input);
                *input = &[];
            }
            return Ok(whole);
        }
        let mut bytes = std::mem::take(&mut self.unread);
        bytes.extend_from_slice(input);
        let mut left = &bytes[..];
        let whole = self.decode(&mut left, due, checker)?;
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
        due: Due<'_>,
        checker: &Checker,
    ) -> Result<Option<Whole>, Fault> {
        let expected = &due.expected.content;
        let looks = !matches!(expected, Content::Any);
        let begin = input.len();
        // Of a content that was looked at where it lay.
        let mut seen = None;
        while let Some(event) = self.decoder.next(input, due.expected.method)? {
            match event {
                Event::Switched(_) => return Err(Fault::Upgrade),
                Event::Head(response) => {
                    if !http::head(due.expected, &response, due.text) {
                        return Err(Fault::Head);
                    }
                    let framing = response.framing;
                    self.framing = Some(framing);
                    if matches!(framing, Framing::None | Framing::Length(_)) {
                        self.head = begin - input.len();
                    }
                }
                Event::Content(_) if !looks => {}
                Event::Content(piece) => {
                    if self.framing == Some(Framing::Length(piece.len() as u64)) {
                        seen = Some(due.content(piece, checker)?);
                    } else {
                        let text = due.expected.parts(due.text).content;
                        let longest = expected.longest(text);
                        if piece.len() > longest - self.content.len() {
                            return Err(Fault::TooLong(longest));
                        }
                        let more = expected.looked_at(text) - self.content.len();
                        self.content.extend_from_slice(&piece[..piece.len().min(more)]);
                    }
                }
                Event::End { keep_alive } => {
                    let until = match seen {
                        Some(until) => until,
                        None => due.content(&self.content, checker)?,
                    };
                    return Ok(Some(Whole { until, ends: !keep_alive }));
                }
            }
        }
        Ok(None)
    }
}

/// The last reply that was whole among the bytes of one read.
struct Last {
    /// It began in a read before, if it is the first of these bytes.
    begun: bool,
    at: Range<usize>,
}

/// A wrong reply, told but for its place.
struct Told {
    sent: String,
    expected: String,
    received: String,
    is_malformed: bool,
}

impl Told {
    /// `shown` is how the reply begins.
    #[cold]
    fn new(fault: Fault, due: Due<'_>, shown: &[u8]) -> Self {
        let began = cut(shown, SHOWN);
        let is_malformed = matches!(fault, Fault::Malformed(_));
        let received = match fault {
            Fault::Malformed(malformed) => format!("{began} ({malformed})"),
            Fault::Head => began,
            Fault::Upgrade => format!("{began} (what follows a 101 is no HTTP)"),
            Fault::TooLong(most) => format!("{began} (more than {most} bytes of content)"),
            Fault::Content(content) => format!("the content {content}, in {began}"),
        };
        let expected = due.expected.in_words(due.text);
        Told { sent: String::new(), expected, received, is_malformed }
    }

    #[cold]
    fn to(self, request: &[u8]) -> Self {
        Told { sent: cut(request, SHOWN), ..self }
    }

    /// What is no HTTP may belong to the reply before it, whose length was then wrong.
    #[cold]
    fn after(mut self, last: &Last, bytes: &[u8], checker: &Checker) -> Self {
        let reply = &bytes[last.at.clone()];
        if self.is_malformed && !reply.is_empty() {
            let begun = if last.begun && last.at.start == 0 { checker.shown_last() } else { &[] };
            let reply = cut(&[begun, reply].concat(), SHOWN);
            self.received += &format!("; the reply before it was {reply}");
        }
        self
    }

    #[cold]
    fn of_reply(self, reply_index: u32) -> Box<Exchange> {
        let Told { sent, expected, received, .. } = self;
        Exchange { sent, expected, received, reply_index: reply_index.into() }.into()
    }
}

#[cfg(test)]
mod tests;
