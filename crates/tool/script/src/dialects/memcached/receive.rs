//! Checks a connection's replies if not all are known to the byte.

use super::{reply::Reply, step::Expectation};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    script::Script,
    text::{line, printable, unsolicited},
    time::Nanos,
};
use regatta_record::Exchange;

/// Exchanges with a cache, and what their replies must be.
#[derive(Debug)]
pub struct Memcached {
    script: Script,
    /// For each exchange before the script repeats.
    expectations: Vec<Expectation>,
}

/// State of a partially received reply.
#[derive(Debug, Default)]
pub struct Part {
    /// Number of correct bytes of a reply that is known to the byte.
    right: usize,
    /// A reply that is not known to the byte.
    reply: Reply,
}

impl Memcached {
    /// Creates the dialect of a closed script.
    pub(super) fn new(script: Script, expectations: Vec<Expectation>) -> Self {
        Memcached { script, expectations }
    }

    fn due(&self, exchange: u32) -> Expectation {
        self.expectations[exchange as usize % self.expectations.len()]
    }

    /// Consumes bytes of the reply to an exchange from the front of `input`. Returns whether the reply
    /// is complete, or `None` if it is wrong.
    fn take(&self, exchange: u32, part: &mut Part, input: &mut &[u8]) -> Option<bool> {
        let due = self.script.reply(exchange);
        match self.due(exchange) {
            Expectation::Either => part.reply.take(input, due).ok(),
            Expectation::Exact => {
                let due = &due[part.right..];
                let here = due.len().min(input.len());
                if input[..here] != due[..here] {
                    return None;
                }
                *input = &input[here..];
                let whole = here == due.len();
                part.right = if whole { 0 } else { part.right + here };
                Some(whole)
            }
        }
    }

    #[cold]
    fn explain(&self, exchange: u32, part: &Part, rest: &[u8], replies: u32) -> Box<Exchange> {
        let before = match self.due(exchange) {
            Expectation::Exact => &self.script.reply(exchange)[..part.right],
            Expectation::Either => part.reply.partial_line(),
        };
        let received = printable(&[before, line(rest)].concat());
        Box::new(Exchange { reply_index: replies.into(), ..self.exchange(exchange, received) })
    }

    /// An exchange in words, with what was received in place of its reply.
    fn exchange(&self, exchange: u32, received: String) -> Exchange {
        let reply = printable(self.script.reply(exchange));
        let expected = match self.due(exchange) {
            Expectation::Exact => reply,
            Expectation::Either => format!("a value of {reply} or none"),
        };
        let sent = printable(self.script.request(exchange));
        Exchange { sent, expected, received, reply_index: 0 }
    }
}

impl Dialect for Memcached {
    type ThreadState = ();
    type ConnectionState = Part;

    #[inline]
    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, _: fn() -> Nanos) {}

    fn talk(&self, _: u32) -> Part {
        Part::default()
    }

    fn receive(
        &self,
        At { cursor, talk, .. }: At<'_, Self>,
        data: &[u8],
        _: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let owed_to = cursor.owed_to(&self.script);
        let before = cursor.answered();
        let (mut at, mut rest) = (before, data);
        while !rest.is_empty() {
            if at >= owed_to {
                let (request, received) =
                    (cursor.last_request(&self.script), printable(line(rest)));
                return Err(Box::new(unsolicited(request, received, at - before)));
            }
            let begins = rest;
            match self.take(at, talk, &mut rest) {
                Some(true) => at += 1,
                Some(false) => {}
                None => return Err(self.explain(at, talk, begins, at - before)),
            }
        }
        let complete = at - before;
        if complete > 0 {
            cursor.answer(complete, &self.script);
        }
        Ok(complete)
    }

    fn unfinished(&self, cursor: &Cursor, part: &Part) -> Option<Exchange> {
        let at = cursor.answered();
        let received = match self.due(at) {
            Expectation::Exact if part.right == 0 => None,
            Expectation::Exact => Some(printable(&self.script.reply(at)[..part.right])),
            Expectation::Either => part.reply.received(),
        };
        received.map(|received| self.exchange(at, received))
    }
}

#[cfg(test)]
mod tests;
