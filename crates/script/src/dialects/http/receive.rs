//! How a connection's replies are checked. One that is the same as one before is compared as memory;
//! others are read by the codec's client end.

use super::{
    desk::Desk,
    expected::Expected,
    memo::Right,
    part::{Due, Part, SHOWN, Told, Whole},
};
use crate::{
    dialect::{At, Dialect, Heard},
    script::Script,
    text::cut,
    time::Nanos,
};
use regatta_proto::http1::{Method, client::Decoder};
use regatta_record::Exchange;

/// Exchanges over HTTP, and what their replies are to be like. What stands among the replies of the
/// script is the text that a reply is compared with.
#[derive(Debug)]
pub struct Http {
    script: Script,
    /// The different expectations; few.
    kinds: Vec<Expected>,
    /// Of each exchange of the script, its repeated tail included: which of them.
    of: Vec<u16>,
}

/// What is kept of a connection.
#[derive(Debug, Default)]
pub struct Talk {
    /// What came of a reply whose end has not come.
    part: Option<Box<Part>>,
    /// The server said that the connection ends with what came.
    ends: bool,
}

impl Http {
    /// Of a closed script; `of` says of each exchange which of the `kinds` its reply is to be like.
    pub(super) fn new(script: Script, kinds: Vec<Expected>, of: &[u16]) -> Self {
        let of = of.iter().copied().cycle().take(script.exchanges()).collect();
        Http { script, kinds, of }
    }

    /// Which of the expectations belongs to an exchange of the script.
    #[cfg(test)]
    pub(super) fn kind(&self, exchange: u32) -> u16 {
        self.of[exchange as usize]
    }

    /// Takes what came, as [`Dialect::receive`].
    fn take(
        &self,
        At { cursor, talk, desk }: At<'_, Self>,
        came: &[u8],
        now: Nanos,
    ) -> Result<u32, Box<Exchange>> {
        // A reply may come before its request is written to the end: a server need not read a content
        // that it has no use for.
        let owed_to = cursor.begun_to(&self.script);
        let before = cursor.answered();
        let (mut at, mut rest) = (before, came);
        while !rest.is_empty() {
            if at >= owed_to || talk.ends {
                let owes = cursor.owed() > at - before;
                unasked(talk, rest, owes, at - before)?;
                break;
            }
            let kind = self.of[at as usize];
            let due = self.due(kind, at, now, desk);
            let known = match talk.part {
                None => desk.recognise(rest, kind, due.expected, due.text, now),
                Some(_) => None,
            };
            let whole = match known {
                Some((length, ends)) => {
                    rest = &rest[length..];
                    Some(ends)
                }
                None => read(talk, desk, &mut rest, kind, due)
                    .map_err(|told| told.of_request(self.script.request(at), at - before))?,
            };
            let Some(ends) = whole else { break };
            at += 1;
            talk.ends = ends;
        }
        let complete = at - before;
        if complete > 0 {
            cursor.answer(complete, &self.script);
        }
        Ok(complete)
    }

    #[inline]
    fn due(&self, kind: u16, at: u32, now: Nanos, desk: &Desk) -> Due<'_> {
        let expected = &self.kinds[usize::from(kind)];
        Due { expected, text: self.script.reply(at), now, wall: desk.wall() }
    }
}

impl Dialect for Http {
    type Desk = Desk;
    type Talk = Talk;

    #[inline]
    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, wall: fn() -> Nanos) -> Desk {
        Desk::new(self.kinds.len(), wall)
    }

    fn talk(&self, _: u32) -> Talk {
        Talk::default()
    }

    #[inline]
    fn receive(
        &self,
        at: At<'_, Self>,
        came: &[u8],
        now: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        self.take(at, came, now)
    }

    fn end(
        &self,
        At { cursor, talk, desk }: At<'_, Self>,
        now: Nanos,
    ) -> Result<bool, Box<Exchange>> {
        let Some(mut part) = talk.part.take() else { return Ok(false) };
        let at = cursor.answered();
        let due = self.due(self.of[at as usize], at, now, desk);
        let completes =
            part.end(due).map_err(|told| told.of_request(self.script.request(at), 0))?;
        if completes {
            desk.give_back(part);
            cursor.answer(1, &self.script);
            talk.ends = true;
        }
        Ok(completes)
    }

    #[inline]
    fn ends(&self, talk: &Talk) -> bool {
        talk.ends
    }
}

/// Reads a reply by the codec, off the front of `input`: whether the connection ends with it. `None` if
/// its end has not come.
fn read(
    talk: &mut Talk,
    desk: &mut Desk,
    input: &mut &[u8],
    kind: u16,
    due: Due<'_>,
) -> Result<Option<bool>, Told> {
    let is_new = talk.part.is_none();
    let mut part = talk.part.take().unwrap_or_else(|| desk.room());
    let came = *input;
    let Some(Whole { until, ends, head }) = part.read(input, due)? else {
        talk.part = Some(part);
        return Ok(None);
    };
    if is_new {
        let bytes = &came[..came.len() - input.len()];
        let right = Right { bytes, head, text: due.text, until, ends };
        desk.learn(right, kind, due.expected);
    }
    desk.give_back(part);
    Ok(Some(ends))
}

/// Bytes that no request is to be thanked for: wrong, unless a server says that it has waited for a
/// request long enough (RFC 9110, 15.5.9). `owes`: it owes a reply to a request that is not written.
fn unasked(talk: &mut Talk, bytes: &[u8], owes: bool, replies: u32) -> Result<(), Box<Exchange>> {
    let gives_up = [&b"HTTP/1.1 408 "[..], b"HTTP/1.0 408 "];
    if !talk.ends && !owes && gives_up.iter().any(|line| bytes.starts_with(line)) {
        talk.ends = true;
        return Ok(());
    }
    let sent = String::new();
    let mut received = cut(bytes, SHOWN);
    let mut expected = String::new();
    if talk.ends {
        expected = "nothing more: the reply before said that the connection ends with it".into();
    } else if let Err(malformed) = Decoder::default().next(&mut &*bytes, Method::Get) {
        expected = "an HTTP reply, and only to a request".into();
        received = format!("{received} ({malformed})");
    }
    Err(Exchange { sent, expected, received, reply_index: replies.into() }.into())
}

#[cfg(test)]
mod tests;
