//! One connection's place in the script, as a pure state machine: what to send next, and to which
//! requests the server owes a reply. Owns no socket and no clock. Whether a reply is right is the
//! dialect's business.

use crate::script::Script;

/// A place in the script. Invariant: `answered <= asked`, and no more than the script's repeated
/// tail apart.
#[derive(Debug)]
pub struct Cursor {
    /// First exchange without its whole reply.
    pub(crate) answered: u32,
    /// First exchange that is not asked yet.
    asked: u32,
    /// Request bytes before this offset are written.
    written_to: u32,
    /// Reply bytes before this offset came and were right.
    pub(crate) checked_to: u32,
    /// Something was written on this connection.
    begun: bool,
}

impl Cursor {
    /// At exchange `start` (below the script's period), nothing asked.
    pub fn new(script: &Script, start: u32) -> Self {
        let begin = script.begin(start);
        let (written_to, checked_to) = (begin.request, begin.reply);
        Cursor { answered: start, asked: start, written_to, checked_to, begun: false }
    }

    /// The exchange that a new connection continues with.
    pub fn next_start(&self, script: &Script) -> u32 {
        script.conversation_from(self.asked)
    }

    /// Whether the next request goes on with a conversation that this connection has begun.
    pub fn is_within_conversation(&self, script: &Script) -> bool {
        self.next_start(script) != self.asked % script.count()
    }

    /// The last request that was asked for on this connection, if any was written.
    pub fn last_request<'s>(&self, script: &'s Script) -> Option<&'s [u8]> {
        let last = (self.owed_to(script) + script.count() - 1) % script.count();
        self.begun.then(|| script.request(last))
    }

    /// `k` more requests are to be sent.
    #[inline]
    pub fn ask(&mut self, k: u32) {
        self.asked += k;
    }

    /// Requests without a whole reply.
    #[inline]
    pub fn owed(&self) -> u32 {
        self.asked - self.answered
    }

    /// What is to be written, all in one piece.
    #[inline]
    pub fn unsent<'s>(&self, script: &'s Script) -> &'s [u8] {
        script.requests(self.written_to, script.begin(self.asked).request)
    }

    /// So many bytes of [`Cursor::unsent`] were written.
    #[inline]
    pub fn wrote(&mut self, n: usize) {
        self.written_to += n as u32;
        self.begun |= n > 0;
    }

    /// The first exchange without its whole reply.
    #[inline]
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// The next `k` replies came and were right.
    #[inline]
    pub fn answer(&mut self, k: u32, script: &Script) {
        self.answered += k;
        self.checked_to = script.begin(self.answered).reply;
        self.wrap(script);
    }

    /// First exchange to which no reply may come yet: its request is not wholly written.
    #[inline]
    pub fn owed_to(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        script.whole_requests(self.written_to)
    }

    /// As [`Cursor::owed_to`], where a reply may come as soon as its request has begun to be written.
    #[inline]
    pub fn begun_to(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        let whole = script.whole_requests(self.written_to);
        whole + u32::from(self.written_to > script.begin(whole).request)
    }

    /// Goes back by whole periods of the script, to the same bytes: by more than one only where it
    /// is shorter than the pipeline. Not while a request from before is not wholly written.
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
