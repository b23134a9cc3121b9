//! The same two programs as callback machines: the position in the program becomes a field. Run on
//! the callback models, e.g. `epoll`.

use super::words::{EMPTY, LAST_NAME};
use crate::{
    Flow, Never,
    double::{QUOTED, TOO_LONG},
};
use regatta_engine::{Context, Session};
use regatta_proto::line::{Integer, Split, escape, split};
use std::time::Instant;

/// The reaction of a machine to a line. The machine stores its own position in the conversation.
pub trait OnLine: Default + 'static {
    /// Handles a line, given without its line end. Appends the reply to `out`.
    fn on_line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Flow;
}

/// `double`: lines are independent, so there is no state.
#[derive(Default)]
pub struct Double;

impl OnLine for Double {
    fn on_line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Flow {
        if line == b"end" {
            return Flow::Close;
        }
        match Integer::parse(line) {
            Some(number) => number.write_doubled(out),
            None => {
                out.extend_from_slice(b"error: not an integer: ");
                escape(line, QUOTED, out);
            }
        }
        out.push(b'\n');
        Flow::Continue
    }
}

/// The dialogue: a line is a first or a last name, depending on whether the first is known.
#[derive(Default)]
pub struct Dialogue {
    first: Option<Vec<u8>>,
}

impl OnLine for Dialogue {
    fn on_line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Flow {
        if line.is_empty() {
            out.extend_from_slice(EMPTY);
            return Flow::Continue;
        }
        match self.first.take() {
            None if line == b"end" => return Flow::Close,
            None => {
                self.first = Some(line.to_vec());
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
    }
}

/// Splits input into lines, and keeps the incomplete last line for the next call.
pub struct Machine<L> {
    left_over: Vec<u8>,
    /// When the current incomplete line started.
    inside: Option<Instant>,
    conversation: L,
}

impl<L: OnLine> Machine<L> {
    pub(super) fn new() -> Self {
        Machine { left_over: Vec::new(), inside: None, conversation: L::default() }
    }

    /// Returns the flow, and whether there was a complete line.
    fn lines(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> (Flow, bool) {
        let joined; // the kept input and the new bytes
        let mut rest = bytes;
        if !self.left_over.is_empty() {
            self.left_over.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.left_over);
            rest = &joined;
        }
        let mut answered = false;
        loop {
            match split(rest) {
                Split::Line { line, consumed } => {
                    answered = true;
                    rest = &rest[consumed..];
                    if self.conversation.on_line(line, out) == Flow::Close {
                        return (Flow::Close, answered);
                    }
                }
                Split::TooLong => {
                    out.extend_from_slice(TOO_LONG);
                    return (Flow::Close, answered);
                }
                Split::Incomplete => {
                    self.left_over.extend_from_slice(rest);
                    return (Flow::Continue, answered);
                }
            }
        }
    }
}

impl<L: OnLine> Session for Machine<L> {
    type Job = Never;
    type Push = Never;
    type Local = ();

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        let (flow, answered) = self.lines(bytes, context.out);
        if answered || self.left_over.is_empty() {
            self.inside = None;
        }
        if !self.left_over.is_empty() {
            self.inside.get_or_insert(context.now.instant);
        }
        flow
    }

    fn on_end(&mut self, _: &mut Context<'_, Self>) -> Flow {
        Flow::Close
    }

    fn inside(&self) -> Option<Instant> {
        self.inside
    }
}
