//! One reply as it comes: read by the codec, and looked at as far as the expectation asks. One that comes
//! in pieces keeps what the codec still needs, and of its content what is to be looked at.

use super::{check, due::Due, expected::Content};
use crate::{text::cut, time::Nanos};
use regatta_proto::http1::client::{Decoder, Event, Framing, Malformed};
use regatta_record::Exchange;

/// Bytes of a reply that are kept to be told.
pub(super) const SHOWN: usize = 1_000;
/// Room for contents that is not given back to the system.
const KEPT: usize = 1 << 20;

/// A reply of which the end has not come.
#[derive(Debug, Default)]
pub(super) struct Part {
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
    /// Its status; 0 before its head is whole.
    status: u16,
    /// What is wrong with it, where that is tolerated.
    wrong: Option<Fault>,
}

/// A whole reply.
pub(super) struct Whole {
    /// Until when it stays right.
    pub until: Nanos,
    /// The connection ends with it.
    pub ends: bool,
    /// See [`Part::head`].
    pub head: usize,
}

/// What is wrong with a reply.
#[derive(Debug)]
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

impl Part {
    /// How the reply begins, as far as it is kept to be told.
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Exchanges that with what is kept elsewhere.
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
        (self.status, self.wrong) = (0, None);
    }

    /// Its status; 0 before its head is whole.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Reads the reply off the front of `input`. `None` if its end has not come. Of a wrong one that
    /// is tolerated all is taken before that is told.
    pub fn read(&mut self, input: &mut &[u8], due: Due<'_>) -> Result<Option<Whole>, Told> {
        let came = *input;
        let whole = match (self.take(input, due), self.wrong.take()) {
            (Ok(Some(Whole { ends, .. })), Some(fault)) => {
                return Err(Told { whole: Some(ends), ..self.told(fault, due, came) });
            }
            (Err(fault), _) => return Err(self.told(fault, due, came)),
            (Ok(whole), wrong) => {
                self.wrong = wrong;
                whole
            }
        };
        if whole.is_none() {
            let more = SHOWN.saturating_sub(self.shown.len()).min(came.len());
            self.shown.extend_from_slice(&came[..more]);
        }
        Ok(whole)
    }

    /// The connection ended. Whether that completes the reply: one may end with its connection.
    pub fn end(&mut self, due: Due<'_>) -> Result<bool, Told> {
        // What was cut off is missing, not wrong.
        let Ok(Some(_)) = self.decoder.end_of_input() else { return Ok(false) };
        match self.wrong.take().map_or_else(|| due.content(&self.content), Err) {
            Ok(_) => Ok(true),
            Err(fault) => Err(Told::new(fault, due, &self.shown)),
        }
    }

    /// `came` is the last that came of it.
    #[cold]
    fn told(&mut self, fault: Fault, due: Due<'_>, came: &[u8]) -> Told {
        let mut shown = std::mem::take(&mut self.shown);
        shown.extend_from_slice(&came[..came.len().min(SHOWN)]);
        Told::new(fault, due, &shown)
    }

    /// The reply is wrong. If that is tolerated, nothing more of it is looked at.
    #[cold]
    fn fails(&mut self, fault: Fault, due: Due<'_>) -> Result<(), Fault> {
        if !due.tolerates {
            return Err(fault);
        }
        self.wrong = Some(fault);
        Ok(())
    }

    /// Takes the reply's bytes off the front of `input`; all of them if its end has not come.
    fn take(&mut self, input: &mut &[u8], due: Due<'_>) -> Result<Option<Whole>, Fault> {
        if self.unread.is_empty() {
            let whole = self.decode(input, due)?;
            if whole.is_none() {
                self.unread.extend_from_slice(input);
                *input = &[];
            }
            return Ok(whole);
        }
        let mut bytes = std::mem::take(&mut self.unread);
        bytes.extend_from_slice(input);
        let mut left = &bytes[..];
        let whole = self.decode(&mut left, due)?;
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

    fn decode(&mut self, input: &mut &[u8], due: Due<'_>) -> Result<Option<Whole>, Fault> {
        let any = matches!(due.expected.content, Content::Any);
        let begin = input.len();
        // Of a content that was looked at where it lay.
        let mut seen = None;
        while let Some(event) = self.decoder.next(input, due.expected.method)? {
            match event {
                Event::Switched(_) => return Err(Fault::Upgrade),
                Event::Head(response) => {
                    let framing = response.framing;
                    (self.framing, self.status) = (Some(framing), response.status);
                    if matches!(framing, Framing::None | Framing::Length(_)) {
                        self.head = begin - input.len();
                    }
                    if !check::head(due.expected, &response, due.text) {
                        self.fails(Fault::Head, due)?;
                    }
                }
                Event::Content(_) if any || self.wrong.is_some() => {}
                Event::Content(piece) => match self.look(piece, due) {
                    Ok(until) => seen = until,
                    Err(fault) => self.fails(fault, due)?,
                },
                Event::End { keep_alive } => {
                    let until = match seen {
                        Some(until) => until,
                        None if self.wrong.is_some() => 0,
                        None => match due.content(&self.content) {
                            Ok(until) => until,
                            Err(fault) => {
                                self.fails(fault, due)?;
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

    /// Looks at a piece of content, or keeps it. Until when the content stays right, if it is whole.
    fn look(&mut self, piece: &[u8], due: Due<'_>) -> Result<Option<Nanos>, Fault> {
        if self.framing == Some(Framing::Length(piece.len() as u64)) {
            return due.content(piece).map(Some);
        }
        let (expected, text) = (&due.expected.content, due.expected.parts(due.text).content);
        let longest = expected.longest(text);
        if piece.len() > longest - self.content.len() {
            return Err(Fault::TooLong(longest));
        }
        let more = expected.looked_at(text) - self.content.len();
        self.content.extend_from_slice(&piece[..piece.len().min(more)]);
        Ok(None)
    }
}

impl Due<'_> {
    /// Until when a content stays right.
    fn content(self, came: &[u8]) -> Result<Nanos, Fault> {
        let until = check::content(self, came);
        until.ok_or_else(|| Fault::Content(cut(came, SHOWN)))
    }
}

/// A wrong reply, told but for its request.
pub(super) struct Told {
    expected: String,
    received: String,
    is_malformed: bool,
    /// It came whole; then whether the connection ends with it.
    pub whole: Option<bool>,
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
        Told { expected: due.expected.in_words(due.text), received, is_malformed, whole: None }
    }

    /// What is no HTTP may belong to the reply before it, whose length was then wrong: `last` is that
    /// reply, if it is known.
    #[cold]
    pub fn after(mut self, last: &[u8]) -> Self {
        if self.is_malformed {
            self.received += &the_reply_before(last);
        }
        self
    }

    #[cold]
    pub fn of_request(self, request: &[u8], reply_index: u32) -> Box<Exchange> {
        let Told { expected, received, .. } = self;
        let sent = cut(request, SHOWN);
        Exchange { sent, expected, received, reply_index: reply_index.into() }.into()
    }
}

/// To be told behind bytes that are no HTTP; nothing, if the reply before them is not known.
pub(super) fn the_reply_before(last: &[u8]) -> String {
    match last {
        [] => String::new(),
        reply => format!("; the reply before it was {}", cut(reply, SHOWN)),
    }
}
