//! Position of one connection in the script, as a pure state machine: what to send next, and which
//! requests still await a reply. Owns no socket and no clock. The dialect decides whether a reply
//! is correct.

use crate::script::Script;
use std::ops::Range;

/// A position in the script. Invariant: `answered <= asked`, and the two are at most the script's
/// repeated tail apart.
#[derive(Debug)]
pub struct Cursor {
    /// First exchange whose reply is not complete.
    pub(crate) answered: u32,
    /// First exchange that has not been requested yet.
    asked: u32,
    /// Request bytes before this offset have been written.
    written_to: u32,
    /// Reply bytes before this offset have arrived and were correct.
    pub(crate) checked_to: u32,
    /// Whether anything has been written on this connection.
    has_written: bool,
}

impl Cursor {
    /// Creates a cursor at exchange `start` (below the script's period) with nothing requested.
    pub fn new(script: &Script, start: u32) -> Self {
        let begin = script.begin(start);
        let (written_to, checked_to) = (begin.request, begin.reply);
        Cursor { answered: start, asked: start, written_to, checked_to, has_written: false }
    }

    /// Returns the exchange at which a new connection continues. `refused`: so many of the last requests were not
    /// processed, and are asked again.
    pub fn next_start(&self, script: &Script, refused: u32) -> u32 {
        let count = script.count();
        script.conversation_from(self.asked + count - refused % count)
    }

    /// Returns whether the next request continues a conversation that this connection has started.
    pub fn is_within_conversation(&self, script: &Script) -> bool {
        self.next_start(script, 0) != self.asked % script.count()
    }

    /// Returns the last request that the server owed a reply to, or `None` if nothing was written.
    pub fn last_request<'s>(&self, script: &'s Script) -> Option<&'s [u8]> {
        let last = (self.owed_to(script) + script.count() - 1) % script.count();
        self.has_written.then(|| script.request(last))
    }

    /// Schedules `k` more requests to be sent.
    #[inline]
    pub fn ask(&mut self, k: u32) {
        self.asked += k;
    }

    /// Number of requests whose reply is not complete.
    #[inline]
    pub fn owed(&self) -> u32 {
        self.asked - self.answered
    }

    /// Bytes to be written next, as one contiguous slice.
    #[inline]
    pub fn unsent<'s>(&self, script: &'s Script) -> &'s [u8] {
        script.requests(self.written_to, script.begin(self.asked).request)
    }

    /// Records that `n` bytes of [`Cursor::unsent`] were written.
    #[inline]
    pub fn wrote(&mut self, n: usize) {
        self.written_to += n as u32;
        self.has_written |= n > 0;
    }

    /// The exchanges that were asked for and whose requests are not completely written.
    #[inline]
    pub(crate) fn unwritten(&self, script: &Script) -> Range<u32> {
        self.owed_to(script)..self.asked
    }

    /// First exchange whose reply is not complete.
    #[inline]
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// Records that the next `k` replies arrived and were correct.
    #[inline]
    pub fn answer(&mut self, k: u32, script: &Script) {
        self.answered += k;
        self.checked_to = script.begin(self.answered).reply;
        self.wrap(script);
    }

    /// First exchange whose reply may not arrive yet, because its request is not completely
    /// written.
    #[inline]
    pub fn owed_to(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        script.whole_requests(self.written_to)
    }

    /// Like [`Cursor::owed_to`], for servers that may reply as soon as a request is partly written.
    #[inline]
    pub fn begun_to(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        let whole = script.whole_requests(self.written_to);
        whole + u32::from(self.written_to > script.begin(whole).request)
    }

    /// Moves back by whole periods of the script, to the same bytes. Moves by more than one period
    /// only if the script is shorter than the pipeline. Does nothing while a request of an earlier
    /// period is not completely written.
    #[inline]
    pub(crate) fn wrap(&mut self, script: &Script) {
        if self.answered >= script.count() {
            self.go_back(script);
        }
    }

    fn go_back(&mut self, script: &Script) {
        let period = script.period();
        while self.answered >= script.count() && self.written_to >= period.request {
            self.answered -= script.count();
            self.asked -= script.count();
            self.written_to -= period.request;
            self.checked_to -= period.reply;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Conversations;

    #[test]
    fn a_new_connection_continues_at_the_next_conversation() {
        let mut script = Script::new(Conversations::Each(2));
        (0..6).for_each(|_| script.push(b"\n", b"\n"));
        script.close(1).unwrap();
        let mut cursor = Cursor::new(&script, 2);
        let after = [0, 1, 1, 2].map(|more| {
            cursor.ask(more);
            (cursor.next_start(&script, 0), cursor.is_within_conversation(&script))
        });
        assert_eq!(after, [(2, false), (4, true), (4, false), (0, false)]);
    }
}
