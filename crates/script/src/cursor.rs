//! One connection's place in the script, as a pure state machine: what to send next, and whether
//! what came is what had to come. Owns no socket and no clock. How replies are checked that are not
//! known to the byte is in `cursor/lines.rs`, and how HTTP is in `cursor/http.rs`.

pub(crate) mod http;
mod lines;

use crate::script::Script;
use lines::Part;
use regatta_record::Exchange;

/// A place in the script. Invariant: `answered <= asked`, and no more than the script's repeated
/// tail apart.
#[derive(Debug)]
pub struct Cursor {
    /// First exchange without its whole reply.
    answered: u32,
    /// First exchange that is not asked yet.
    asked: u32,
    /// Request bytes before this offset are written.
    written_to: u32,
    /// Reply bytes before this offset came and were right.
    checked_to: u32,
    /// Where the script has patterns: what came of a line whose end has not come.
    part: Option<Box<Part>>,
    /// Where replies are HTTP: what came of one whose end has not come.
    reply: Option<Box<http::Part>>,
    /// Likewise: the server said that the connection ends with what came.
    ends: bool,
    /// Something was written.
    begun: bool,
}

/// The bytes are not what had to come; [`Cursor::explain`] tells more.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong;

impl Cursor {
    /// At exchange `start` (below the script's period), nothing asked.
    pub fn new(script: &Script, start: u32) -> Self {
        let begin = script.begin(start);
        let (written_to, checked_to) = (begin.request, begin.reply);
        let (answered, asked) = (start, start);
        Cursor {
            answered,
            asked,
            written_to,
            checked_to,
            part: None,
            reply: None,
            ends: false,
            begun: false,
        }
    }

    /// The exchange that a new connection continues with.
    pub fn next_start(&self, script: &Script) -> u32 {
        script.conversation_from(self.asked)
    }

    /// Whether the next request goes on with a conversation that this connection has begun.
    pub fn is_within_conversation(&self, script: &Script) -> bool {
        self.next_start(script) != self.asked % script.count()
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

    /// Takes bytes that came and returns how many replies they complete. On `Err` nothing has
    /// changed.
    #[inline]
    pub fn receive(&mut self, bytes: &[u8], script: &Script) -> Result<u32, Wrong> {
        if let Some(patterns) = script.patterns() {
            return self.receive_lines(bytes, script, patterns);
        }
        let to = self.checked_to + bytes.len() as u32;
        if to > self.owed_to(script) || script.replies(self.checked_to, to) != bytes {
            return Err(Wrong);
        }
        self.checked_to = to;
        let before = self.answered;
        while self.answered < self.asked && script.begin(self.answered + 1).reply <= to {
            self.answered += 1;
        }
        let complete = self.answered - before;
        if self.answered >= script.count() {
            self.wrap(script);
        }
        Ok(complete)
    }

    /// Says which exchange the bytes that [`Cursor::receive`] refused belong to, and how.
    /// `replies` is how many whole replies came on this connection before.
    pub fn explain(&self, bytes: &[u8], script: &Script, replies: u64) -> Exchange {
        if let Some(patterns) = script.patterns() {
            return self.explain_lines(bytes, script, patterns, replies);
        }
        let owed = script.replies(self.checked_to, self.owed_to(script));
        let right = bytes.iter().zip(owed).take_while(|(came, due)| came == due).count();
        let at = self.checked_to + right as u32;
        if right == owed.len() {
            let asked = self.whole_asked(script);
            let reply_index = replies + u64::from(asked - self.answered);
            return self.unasked_for(script, reply_index, printable(line(&bytes[right..])));
        }
        let exchange = script.exchange_of_reply(at);
        let begin = script.begin(exchange).reply;
        let mut received = script.replies(begin, at).to_vec();
        received.extend_from_slice(line(&bytes[right..]));
        Exchange {
            sent: printable(script.request(exchange)),
            expected: printable(script.reply(exchange)),
            received: printable(&received),
            reply_index: replies + u64::from(exchange - self.answered),
        }
    }

    /// What came is no reply to any request.
    fn unasked_for(&self, script: &Script, reply_index: u64, received: String) -> Exchange {
        let asked = self.whole_asked(script);
        if !self.begun {
            let expected = "nothing: no request was sent on this connection yet".into();
            return Exchange { sent: String::new(), expected, received, reply_index };
        }
        let last = (asked + script.count() - 1) % script.count();
        let expected = "nothing more: every request on this connection has its reply".into();
        Exchange { sent: printable(script.request(last)), expected, received, reply_index }
    }

    /// The reply of which only a part came; `None` if nothing of one did. `replies` is how many whole
    /// replies came on this connection before.
    pub fn unfinished(&self, script: &Script, replies: u64) -> Option<Exchange> {
        if self.owed() == 0 {
            return None;
        }
        if let Some(http) = script.replies_in_http() {
            return self.unfinished_http(script, http, replies);
        }
        if let Some(patterns) = script.patterns() {
            return self.unfinished_line(script, patterns, replies);
        }
        let came = script.replies(script.begin(self.answered).reply, self.checked_to);
        (!came.is_empty()).then(|| Exchange {
            sent: printable(script.request(self.answered)),
            expected: printable(script.reply(self.answered)),
            received: printable(came),
            reply_index: replies,
        })
    }

    /// End of the replies to requests that the server can have read: a reply to a request of
    /// which a part is not even written is unasked.
    #[inline]
    fn owed_to(&self, script: &Script) -> u32 {
        let asked = script.begin(self.asked);
        if self.written_to == asked.request {
            return asked.reply;
        }
        script.begin(self.whole_asked(script)).reply
    }

    /// First exchange whose request is not wholly written.
    fn whole_asked(&self, script: &Script) -> u32 {
        script.whole_requests(self.written_to)
    }

    /// Goes back by whole periods of the script, to the same bytes: by more than one only where it
    /// is shorter than the pipeline. Not while a request from before is not wholly written.
    fn wrap(&mut self, script: &Script) {
        let period = script.period();
        while self.answered >= script.count() && self.written_to >= period.request {
            self.answered -= script.count();
            self.asked -= script.count();
            self.written_to -= period.request;
            self.checked_to -= period.reply;
        }
    }
}

/// Up to and including the first newline.
fn line(bytes: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', bytes).map_or(bytes, |end| &bytes[..=end])
}

/// Printable ASCII, long ones cut.
pub(crate) fn printable(bytes: &[u8]) -> String {
    cut(bytes, 200)
}

/// Printable ASCII, cut after so many characters.
fn cut(bytes: &[u8], longest: usize) -> String {
    let mut text = bytes.escape_ascii().take(longest + 1).map(char::from).collect::<String>();
    if text.len() > longest {
        text.truncate(longest);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Workload, script::EXCHANGES};
    use proptest::prelude::*;
    use std::sync::LazyLock;

    const PIPELINE: u32 = 512;
    static DOUBLE: LazyLock<Script> = LazyLock::new(|| {
        Workload::Double.script(1, PIPELINE as usize, Default::default()).unwrap()
    });

    /// At `start`, with `k` requests written.
    fn asked(start: u32, k: u32) -> Cursor {
        let mut cursor = Cursor::new(&DOUBLE, start);
        cursor.ask(k);
        cursor.wrote(cursor.unsent(&DOUBLE).len());
        cursor
    }

    fn replies(start: u32, k: u32) -> Vec<u8> {
        (start..start + k).flat_map(|i| DOUBLE.reply(i)).copied().collect()
    }

    proptest! {
        #[test]
        fn right_replies_pass_however_they_are_cut(
            start in 0..EXCHANGES as u32,
            asks in prop::collection::vec(1..PIPELINE, 1..6),
            cuts in prop::collection::vec(1..200_usize, 1..400),
        ) {
            let mut cursor = Cursor::new(&DOUBLE, start);
            let (mut sent, mut next_cut) = (start, cuts.iter().cycle());
            for k in asks {
                cursor.ask(k);
                cursor.wrote(cursor.unsent(&DOUBLE).len());
                let stream = replies(sent % EXCHANGES as u32, k);
                let (mut rest, mut complete) = (&stream[..], 0);
                while !rest.is_empty() {
                    let (came, left) = rest.split_at((*next_cut.next().unwrap()).min(rest.len()));
                    complete += cursor.receive(came, &DOUBLE).unwrap();
                    rest = left;
                    let whole = (stream.len() - left.len()) as u32;
                    let due = stream[..whole as usize].iter().filter(|b| **b == b'\n').count();
                    prop_assert_eq!(complete, due as u32);
                }
                prop_assert_eq!(cursor.owed(), 0);
                sent += k;
            }
        }

        #[test]
        fn one_changed_byte_is_found_however_the_stream_is_cut(
            start in 0..EXCHANGES as u32,
            k in 1..PIPELINE,
            at in any::<prop::sample::Index>(),
            flip in 1..=255_u8,
            cuts in prop::collection::vec(1..200_usize, 1..400),
        ) {
            let mut cursor = asked(start, k);
            let mut stream = replies(start, k);
            let at = at.index(stream.len());
            stream[at] ^= flip;
            let wrong = stream[..at].iter().filter(|b| **b == b'\n').count();
            let (mut rest, mut complete, mut next_cut) = (&stream[..], 0, cuts.iter().cycle());
            let exchange = loop {
                prop_assert!(!rest.is_empty(), "the changed byte was not noticed");
                let (came, left) = rest.split_at((*next_cut.next().unwrap()).min(rest.len()));
                match cursor.receive(came, &DOUBLE) {
                    Ok(n) => complete += u64::from(n),
                    Err(Wrong) => break cursor.explain(came, &DOUBLE, complete),
                }
                rest = left;
            };
            prop_assert_eq!(exchange.reply_index, wrong as u64);
            let index = start + wrong as u32;
            prop_assert_eq!(exchange.sent, printable(DOUBLE.request(index)));
            prop_assert_eq!(exchange.expected, printable(DOUBLE.reply(index)));
        }
    }

    #[test]
    fn a_wrong_reply_is_shown_whole_though_it_came_in_two_pieces() {
        let mut cursor = asked(61, 1);
        assert_eq!(DOUBLE.request(61), b"1\n");
        assert_eq!(cursor.receive(b"2", &DOUBLE), Ok(0));
        assert_eq!(cursor.receive(b".0\n99\n", &DOUBLE), Err(Wrong));
        let exchange = cursor.explain(b".0\n99\n", &DOUBLE, 7);
        let text = |s: &str| s.to_owned();
        let (sent, expected, received) = (text("1\\n"), text("2\\n"), text("2.0\\n"));
        assert_eq!(exchange, Exchange { sent, expected, received, reply_index: 7 });
    }

    #[test]
    fn what_comes_after_the_last_reply_is_unasked() {
        let mut cursor = asked(0, 1);
        assert_eq!(cursor.receive(b"0\n0\n", &DOUBLE), Err(Wrong));
        let exchange = cursor.explain(b"0\n0\n", &DOUBLE, 3);
        assert_eq!((exchange.sent.as_str(), exchange.received.as_str()), ("0\\n", "0\\n"));
        assert!(exchange.expected.starts_with("nothing more"), "{exchange:?}");
        assert_eq!(exchange.reply_index, 4);
        assert_eq!(cursor.receive(b"0\n", &DOUBLE), Ok(1));
        assert_eq!(cursor.receive(b"!", &DOUBLE), Err(Wrong));
    }

    #[test]
    fn a_reply_to_a_request_that_is_half_written_is_unasked() {
        let mut cursor = Cursor::new(&DOUBLE, 0);
        cursor.ask(2);
        cursor.wrote(cursor.unsent(&DOUBLE).len() - 1);
        assert_eq!(cursor.receive(&replies(0, 2), &DOUBLE), Err(Wrong));
        assert_eq!(cursor.receive(&replies(0, 1), &DOUBLE), Ok(1));
        cursor.wrote(1);
        assert_eq!(cursor.receive(&replies(1, 1), &DOUBLE), Ok(1));
    }

    #[test]
    fn long_bytes_are_cut_and_all_are_printable() {
        assert_eq!(printable(b"\xff\t\n"), "\\xff\\t\\n");
        let long = printable(&[b'x'; 500]);
        assert_eq!((long.len(), long.ends_with("x...")), (203, true));
    }
}
