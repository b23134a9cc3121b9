//! The same two programs as hand-written callback machines: what was a place in the program is
//! now a field. Run on `epoll`.

use super::{EMPTY, LAST_NAME};
use crate::{
    Flow, Limits,
    double::{QUOTED, TOO_LONG},
    style::Session,
    style::callback::Clock,
};
use regatta_proto::line::{Integer, Split, escape, split};
use std::time::Instant;

/// `double` as a callback machine.
pub struct DoubleSession {
    left_over: Vec<u8>,
    clock: Clock,
}

impl DoubleSession {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        DoubleSession { left_over: Vec::new(), clock: Clock::new(limits, now) }
    }
}

impl Session for DoubleSession {
    fn on_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) -> Flow {
        let (flow, answered) = lines(&mut self.left_over, bytes, out, |line, out| {
            if line == b"end" {
                return Flow::Close;
            }
            match Integer::parse(line) {
                Some(number) => number.write_double(out),
                None => {
                    out.extend_from_slice(b"error: not an integer: ");
                    escape(line, QUOTED, out);
                }
            }
            out.push(b'\n');
            Flow::Continue
        });
        self.clock.heard(now);
        self.clock.request(now, answered, !self.left_over.is_empty());
        flow
    }

    fn on_writable(&mut self, now: Instant, _out: &mut Vec<u8>) -> Flow {
        self.clock.heard(now);
        Flow::Continue
    }

    fn on_end(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Flow {
        Flow::Close
    }

    fn due(&self) -> Instant {
        self.clock.due()
    }

    fn on_tick(&mut self, now: Instant) -> Flow {
        self.clock.on_tick(now)
    }
}

/// The dialogue as a callback machine.
pub struct DialogueSession {
    left_over: Vec<u8>,
    clock: Clock,
    /// Where in the dialogue we are: the first name, once it is known.
    first: Option<Vec<u8>>,
}

impl DialogueSession {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        DialogueSession { left_over: Vec::new(), clock: Clock::new(limits, now), first: None }
    }
}

impl Session for DialogueSession {
    fn on_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) -> Flow {
        let first = &mut self.first;
        let (flow, answered) = lines(&mut self.left_over, bytes, out, |line, out| {
            if line.is_empty() {
                out.extend_from_slice(EMPTY);
                return Flow::Continue;
            }
            match first.take() {
                None if line == b"end" => return Flow::Close,
                None => {
                    *first = Some(line.to_vec());
                    out.extend_from_slice(LAST_NAME);
                }
                Some(first) => {
                    out.extend_from_slice(b"hello ");
                    out.extend_from_slice(&first);
                    out.push(b' ');
                    out.extend_from_slice(line);
                    out.push(b'\n');
                }
            }
            Flow::Continue
        });
        self.clock.heard(now);
        self.clock.request(now, answered, !self.left_over.is_empty());
        flow
    }

    fn on_writable(&mut self, now: Instant, _out: &mut Vec<u8>) -> Flow {
        self.clock.heard(now);
        Flow::Continue
    }

    fn on_end(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Flow {
        Flow::Close
    }

    fn due(&self) -> Instant {
        self.clock.due()
    }

    fn on_tick(&mut self, now: Instant) -> Flow {
        self.clock.on_tick(now)
    }
}

/// Calls `on_line` for every whole line and keeps what is left over for the next time. Tells also
/// whether there was any.
fn lines(
    left_over: &mut Vec<u8>,
    bytes: &[u8],
    out: &mut Vec<u8>,
    mut on_line: impl FnMut(&[u8], &mut Vec<u8>) -> Flow,
) -> (Flow, bool) {
    let joined; // what was left over, and the new bytes
    let mut rest = bytes;
    if !left_over.is_empty() {
        left_over.extend_from_slice(bytes);
        joined = std::mem::take(left_over);
        rest = &joined;
    }
    let mut answered = false;
    loop {
        match split(rest) {
            Split::Line { line, consumed } => {
                answered = true;
                rest = &rest[consumed..];
                if on_line(line, out) == Flow::Close {
                    return (Flow::Close, answered);
                }
            }
            Split::TooLong => {
                out.extend_from_slice(TOO_LONG);
                return (Flow::Close, answered);
            }
            Split::Incomplete => {
                left_over.extend_from_slice(rest);
                return (Flow::Continue, answered);
            }
        }
    }
}
