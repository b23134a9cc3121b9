//! Checks a connection's replies. A reply with the same bytes as an earlier one is compared as memory;
//! others are parsed by the codec.

use super::{
    criteria::Criteria,
    expected::{Digest, Expected},
    memo::Right,
    partial_reply::{Part, SHOWN, Whole, WrongReply, describe_previous_reply},
    salted::{Answer, Answers, Salted, Salts},
    thread_state::ThreadState,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    script::Script,
    text::{self, cut},
    time::Nanos,
};
use regatta_proto::http1::{Method, client::Decoder};
use regatta_record::Exchange;
use std::{borrow::Cow, cell::Cell, ops::Range};

/// Exchanges over HTTP and their expected replies. The script holds, as the reply of an exchange, the
/// text that its reply is compared with.
#[derive(Debug)]
pub struct Http {
    script: Script,
    /// The expectation of each request or step of the workload.
    kinds: Vec<Expected>,
    /// Index of the expectation of each exchange, including the script's repeated tail.
    of: Vec<u16>,
    /// Present if each request has its own salt.
    salted: Option<Salted>,
}

/// State of a connection.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// The partially received reply, if any.
    part: Option<Box<Part>>,
    /// Whether the server announced that the connection closes after the bytes received so far.
    ends: bool,
    /// Number of the last received bytes up to the end of a complete but wrong reply.
    resumes: Option<usize>,
    salts: Salts,
    /// When the connection was last read or a request issued, whichever was later. Received bytes count
    /// as sent after that.
    since: Option<Nanos>,
}

impl Http {
    /// Creates the dialect of a closed script; `of` holds the index in `kinds` of each exchange's
    /// expectation.
    pub(in crate::dialects::http) fn new(script: Script, kinds: Vec<Expected>, of: &[u16]) -> Self {
        let of = of.iter().copied().cycle().take(script.exchanges()).collect();
        Http { script, kinds, of, salted: None }
    }

    /// The script, the expectation of each request or step of the workload, the index in them of each exchange's
    /// expectation, and how requests get their salts.
    pub(in crate::dialects) fn into_parts(
        self,
    ) -> (Script, Vec<Expected>, Vec<u16>, Option<Salted>) {
        let Http { script, kinds, of, salted } = self;
        (script, kinds, of, salted)
    }

    /// Returns the same dialect, with a salt in each request.
    pub(in crate::dialects::http) fn salted(self, salted: Salted) -> Self {
        Http { salted: Some(salted), ..self }
    }

    /// Returns a request that is not answered yet, as it was sent.
    #[cold]
    fn request(&self, exchange: u32, cursor: &Cursor, talk: &ConnectionState) -> Cow<'_, [u8]> {
        let request = self.script.request(exchange);
        self.as_sent(request, talk.salts.index(exchange, cursor), talk)
    }

    /// Returns the last request that the server owed a reply to, as it was sent, or `None` if nothing
    /// was written.
    #[cold]
    fn last_request(&self, cursor: &Cursor, talk: &ConnectionState) -> Option<Cow<'_, [u8]>> {
        let after = talk.salts.index(cursor.owed_to(&self.script), cursor);
        let request = cursor.last_request(&self.script)?;
        Some(self.as_sent(request, after.wrapping_sub(1), talk))
    }

    #[cold]
    fn as_sent<'s>(&self, request: &'s [u8], index: u32, talk: &ConnectionState) -> Cow<'s, [u8]> {
        match &self.salted {
            None => request.into(),
            Some(salted) => salted.request(request, salted.salt(index, &talk.salts)).into(),
        }
    }

    /// Keeps the answer to `exchange` to be verified later. The cursor has not counted it yet.
    fn keep(&self, exchange: u32, digest: Digest, At { cursor, talk, desk }: &mut At<'_, Self>) {
        if let (Some(salted), Some(answers)) = (&self.salted, &mut desk.answers) {
            let reply = talk.salts.index(exchange, cursor);
            let salt = salted.salt(reply, &talk.salts);
            answers.keep(Answer { salt, exchange, reply, digest });
        }
    }

    /// Counts the next `k` replies as answered.
    #[inline]
    fn answer(&self, k: u32, cursor: &mut Cursor, talk: &mut ConnectionState) {
        cursor.answer(k, &self.script);
        talk.salts.answered = talk.salts.answered.wrapping_add(k);
    }

    /// Returns the index of an exchange's expectation.
    #[cfg(test)]
    pub(in crate::dialects::http) fn kind(&self, exchange: u32) -> u16 {
        self.of[exchange as usize]
    }

    /// Implements [`Dialect::receive`].
    fn take(&self, mut to: At<'_, Self>, data: &[u8], now: Nanos) -> Result<u32, Box<Exchange>> {
        // A reply may arrive before its request is completely written: a server need not read content
        // that it does not use.
        let owed_to = to.cursor.begun_to(&self.script);
        let before = to.cursor.answered();
        let (mut at, mut rest) = (before, data);
        let mut last = Last { started_earlier: to.talk.part.is_some(), at: 0..0 };
        let answer = Cell::default();
        while !rest.is_empty() {
            let At { cursor, talk, desk } = &mut to;
            if at >= owed_to || talk.ends {
                if is_request_timeout(talk, rest, cursor.owed() > at - before) {
                    break;
                }
                let request = self.last_request(cursor, talk);
                let last = last.shown(data, desk);
                return Err(unsolicited(talk, rest, request.as_deref(), &last, at - before));
            }
            let begins = data.len() - rest.len();
            let kind = self.of[at as usize];
            let criteria = self.criteria(at, now, talk.since, desk, &answer);
            let known = match talk.part {
                None => desk.recognise(rest, kind, criteria),
                Some(_) => None,
            };
            let whole = match known {
                Some((length, ends)) => {
                    rest = &rest[length..];
                    Some(ends)
                }
                None => match read(talk, desk, &mut rest, kind, criteria) {
                    Ok(whole) => whole,
                    Err(wrong_reply) => {
                        let request = self.request(at, cursor, talk);
                        if let Some(ends) = wrong_reply.whole {
                            self.answer(at - before + 1, cursor, talk);
                            (talk.ends, talk.resumes) = (ends, Some(data.len() - rest.len()));
                        }
                        let wrong_reply = wrong_reply.after(&last.shown(data, desk));
                        return Err(wrong_reply.of_request(&request, at - before));
                    }
                },
            };
            let Some(ends) = whole else { break };
            self.keep(at, answer.get(), &mut to);
            last.at = begins..data.len() - rest.len();
            at += 1;
            to.talk.ends = ends;
        }
        to.talk.since = Some(now);
        let complete = at - before;
        if complete > 0 {
            self.answer(complete, to.cursor, to.talk);
        }
        Ok(complete)
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "all that a reply is compared with")]
    fn criteria<'a>(
        &'a self,
        at: u32,
        now: Nanos,
        since: Option<Nanos>,
        desk: &ThreadState,
        answer: &'a Cell<Digest>,
    ) -> Criteria<'a> {
        let waited = since.map_or(0, |since| now.saturating_sub(since));
        let expected = &self.kinds[usize::from(self.of[at as usize])];
        let (wall, tolerates) = (desk.wall(), desk.tolerates);
        Criteria { expected, text: self.script.reply(at), now, waited, wall, tolerates, answer }
    }
}

impl Dialect for Http {
    type ThreadState = ThreadState;
    type ConnectionState = ConnectionState;

    #[inline]
    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, wall: fn() -> Nanos) -> ThreadState {
        let answers = self.salted.is_some().then(Answers::new);
        ThreadState::new(self.kinds.len(), wall, answers)
    }

    fn tolerate(&self, desk: &mut ThreadState) {
        desk.tolerates = true;
    }

    fn statuses<'d>(&self, desk: &'d ThreadState) -> &'d [u64] {
        desk.statuses()
    }

    fn talk(&self, number: u32) -> ConnectionState {
        ConnectionState { salts: Salts::of(number), ..ConnectionState::default() }
    }

    fn renew(&self, talk: &mut ConnectionState, _: u32) {
        let mut salts = std::mem::take(&mut talk.salts);
        salts.renew();
        *talk = ConnectionState { salts, ..ConnectionState::default() };
    }

    #[inline]
    fn asked(&self, talk: &mut ConnectionState, _: u32, from: Nanos) {
        talk.since = talk.since.max(Some(from));
    }

    #[inline]
    fn unsent<'b>(&'b self, cursor: &Cursor, talk: &'b mut ConnectionState, _: Nanos) -> &'b [u8] {
        match &self.salted {
            None => cursor.unsent(&self.script),
            Some(salted) => salted.unsent(&self.script, cursor, &mut talk.salts),
        }
    }

    #[inline]
    fn receive(
        &self,
        at: At<'_, Self>,
        data: &[u8],
        now: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        self.take(at, data, now)
    }

    fn resume(&self, talk: &mut ConnectionState) -> Option<usize> {
        talk.resumes.take()
    }

    fn end(&self, mut to: At<'_, Self>, now: Nanos) -> Result<bool, Box<Exchange>> {
        let At { cursor, talk, desk } = &mut to;
        let Some(mut part) = talk.part.take() else { return Ok(false) };
        let (at, answer) = (cursor.answered(), Cell::default());
        let criteria = self.criteria(at, now, talk.since, desk, &answer);
        let completes = part
            .end(criteria)
            .map_err(|wrong_reply| wrong_reply.of_request(&self.request(at, cursor, talk), 0))?;
        if completes {
            desk.count(part.status());
            desk.give_back(part);
            self.keep(at, answer.get(), &mut to);
            self.answer(1, to.cursor, to.talk);
            to.talk.ends = true;
        }
        Ok(completes)
    }

    fn verify(
        &self,
        desk: &mut ThreadState,
        is_late: &dyn Fn() -> bool,
        wrong: &mut dyn FnMut(Exchange),
    ) {
        if let (Some(salted), Some(answers)) = (&self.salted, &mut desk.answers) {
            salted.verify(&self.script, answers, is_late, wrong);
        }
    }

    fn unfinished(&self, cursor: &Cursor, talk: &ConnectionState) -> Option<Exchange> {
        let (part, at) = (talk.part.as_ref()?, cursor.answered());
        let expected = &self.kinds[usize::from(self.of[at as usize])];
        Some(Exchange {
            sent: cut(&self.request(at, cursor, talk), SHOWN),
            expected: expected.in_words(self.script.reply(at)),
            received: cut(part.shown(), SHOWN),
            reply_index: 0,
        })
    }

    /// RFC 9112, 9.6: a server that reads `Connection: close` closes after its reply.
    fn owes_end(&self, cursor: &Cursor, talk: &ConnectionState) -> Option<Exchange> {
        let request = self.last_request(cursor, talk).filter(|_| cursor.owed() == 0)?;
        let mut head = request.split(|byte| *byte == b'\n').take_while(|line| *line != b"\r");
        head.any(|line| line.eq_ignore_ascii_case(b"connection: close\r")).then(|| Exchange {
            sent: cut(&request, SHOWN),
            expected: "the server to close the connection after its reply, as the request asked \
                       (RFC 9112, 9.6)"
                .into(),
            received: "the reply, but the connection was not closed within a second".into(),
            reply_index: 0,
        })
    }

    #[inline]
    fn ends(&self, talk: &ConnectionState) -> bool {
        talk.ends
    }
}

/// The last complete reply among the bytes of one read.
struct Last {
    /// Whether the first reply of these bytes started in an earlier read.
    started_earlier: bool,
    at: Range<usize>,
}

impl Last {
    /// Returns its bytes, if they are known; `data` are the bytes of this read.
    #[cold]
    fn shown(&self, data: &[u8], desk: &ThreadState) -> Vec<u8> {
        let start =
            if self.started_earlier && self.at.start == 0 { desk.shown_last() } else { &[] };
        match &data[self.at.clone()] {
            [] => Vec::new(),
            reply => [start, reply].concat(),
        }
    }
}

/// Parses a reply with the codec, from the front of `input`. Returns whether the connection closes
/// after it, or `None` if it is not complete.
fn read(
    talk: &mut ConnectionState,
    desk: &mut ThreadState,
    input: &mut &[u8],
    kind: u16,
    criteria: Criteria<'_>,
) -> Result<Option<bool>, WrongReply> {
    let is_new = talk.part.is_none();
    let mut part = talk.part.take().unwrap_or_else(|| desk.take_buffer());
    let data = *input;
    let whole = part.read(input, criteria);
    let status = part.status();
    if !matches!(whole, Ok(None)) {
        desk.count(status);
    }
    let Some(Whole { until, ends, head }) = whole? else {
        talk.part = Some(part);
        return Ok(None);
    };
    if is_new {
        let bytes = &data[..data.len() - input.len()];
        let right = Right { bytes, head, text: criteria.text, until, ends, status };
        desk.learn(right, kind, criteria.expected);
    }
    desk.give_back(part);
    Ok(Some(ends))
}

/// Whether the server reports that it waited too long for a request (408; RFC 9110, 15.5.9), which it
/// may do unless it `owes` a reply. The connection closes after that.
fn is_request_timeout(talk: &mut ConnectionState, bytes: &[u8], owes: bool) -> bool {
    let lines = [&b"HTTP/1.1 408 "[..], b"HTTP/1.0 408 "];
    let is_request_timeout =
        !talk.ends && !owes && lines.iter().any(|line| bytes.starts_with(line));
    talk.ends |= is_request_timeout;
    is_request_timeout
}

/// Describes bytes that no request caused. `request` is the last one sent, `last` the reply before
/// these bytes; both only if known.
#[cold]
fn unsolicited(
    talk: &ConnectionState,
    bytes: &[u8],
    request: Option<&[u8]>,
    last: &[u8],
    replies: u32,
) -> Box<Exchange> {
    let mut received = cut(bytes, SHOWN);
    if let Err(malformed) = Decoder::default().next(&mut &*bytes, Method::Get) {
        received = format!("{received} ({malformed}){}", describe_previous_reply(last));
    }
    let mut exchange = text::unsolicited(request, received, replies);
    if talk.ends {
        exchange.expected =
            "nothing more: the previous reply announced that the connection closes after it".into();
    }
    exchange.into()
}

#[cfg(test)]
mod tests;
