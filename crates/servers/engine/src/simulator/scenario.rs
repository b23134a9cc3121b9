//! What a simulation needs to know about an engine: what its peers send, and what they must
//! receive.

use super::{Random, Visit};
use crate::{Engine, Flow, Now};
use std::{net::SocketAddr, ops::Range, time::Instant};

/// What a peer must receive, according to an independent model. The scenario updates it; the
/// simulator compares.
#[derive(Debug, Default)]
pub struct Expected {
    /// All output due for the input that has reached the engine so far. The peer must always have
    /// received a prefix of it, and all of it after an orderly end.
    pub output: Vec<u8>,
    /// The service closes the connection after this output. Later input is not interpreted.
    pub closes: bool,
    /// When the peer's incomplete request started.
    pub inside: Option<Instant>,
    /// The lengths of input and output up to the end of each request and its reply, for the bound
    /// on buffered input.
    pub marks: Vec<(usize, usize)>,
    /// The engine may abort the connection.
    pub may_abort: bool,
    /// The peer may be waiting for the engine, so its silence need not cause a timeout.
    pub waits: bool,
    /// The engine may keep the connection open at the end, e.g. one to another server.
    pub stays: bool,
    /// Input that the model has not interpreted yet, for the scenario's use.
    pub input: Vec<u8>,
    /// How much of it is interpreted, for the scenario's use.
    pub taken: usize,
}

impl Expected {
    /// Notes when the incomplete request started, if there is one. `before`: how much input was interpreted before
    /// what has arrived now.
    pub fn note_start(&mut self, before: usize, now: Now) {
        self.inside = match self.inside {
            _ if self.taken == self.input.len() => None,
            Some(started) if self.taken == before => Some(started),
            _ => Some(now.instant),
        };
    }

    pub(super) fn clear(&mut self) {
        let Expected { mut output, mut marks, mut input, .. } = std::mem::take(self);
        output.clear();
        marks.clear();
        input.clear();
        *self = Expected { output, marks, input, ..Expected::default() };
    }
}

/// An engine, its peers, and the model of what they must receive. Peers are numbered: first the
/// clients, then the connections to other servers, in the order in which they are opened.
pub trait Scenario {
    /// The simulated engine.
    type Engine: Engine;

    /// The name of the scenario, for messages.
    const NAME: &'static str;

    /// Visits that never occur in this scenario.
    const NEVER: &[Visit];

    /// Histories that visit what few others do, so that a run of fewer histories visits everything too. The
    /// output of a long run has their numbers.
    const RARE: &[u64] = &[];

    /// Maximum pending output of a connection in bytes, in addition to the size of one read times
    /// [`Scenario::GROWTH`].
    const PENDING: usize;

    /// Maximum bytes of output per byte of input, where output is not bounded otherwise.
    const GROWTH: usize;

    /// Maximum input that a connection may buffer in bytes, in addition to two reads.
    const HELD: usize;

    /// Minimum pending output in bytes for which the engine may abort a connection.
    const BACKLOG: usize = 0;

    /// Whether a stop may drain over a time; see [`Scenario::retired`].
    const DRAINS: bool = false;

    /// Starts a new history. Returns the number of cores.
    fn begin(&mut self, random: &mut Random) -> usize;

    /// Creates the engine of a core.
    fn engine(&mut self, core: usize) -> Self::Engine;

    /// Appends what a peer sends unprompted to `input`.
    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>);

    /// Called when an engine connects to another server. Returns whether the server accepts.
    fn connects(&mut self, _who: usize, _core: usize, _to: SocketAddr) -> bool {
        true
    }

    /// Called when a connection is open.
    fn opened(&mut self, _who: usize, _core: usize, _now: Now, _all: &mut [Expected]) {}

    /// Called when these bytes of a peer are passed to an engine.
    fn handed(&mut self, who: usize, now: Now, bytes: &[u8], all: &mut [Expected]);

    /// Called when an engine is notified that the input of a connection has ended.
    fn ended(&mut self, _who: usize, _now: Now, _all: &mut [Expected]) {}

    /// Called when a drain has retired a client, which was open. Its alarm may have been served just before.
    fn retired(&mut self, _who: usize, _now: Now, _all: &mut [Expected]) {}

    /// Called when a connection is no longer open, so nothing more is appended to its output.
    fn left(&mut self, _who: usize, _all: &mut [Expected]) {}

    /// Called when a letter is sent to another core. A scenario may encode and decode it.
    fn carried(
        &mut self,
        letter: <Self::Engine as Engine>::Letter,
    ) -> <Self::Engine as Engine>::Letter {
        letter
    }

    /// Called when a letter is passed to an engine.
    fn heard(
        &mut self,
        _core: usize,
        _letter: &<Self::Engine as Engine>::Letter,
        _now: Now,
        _all: &mut [Expected],
    ) {
    }

    /// Called when the timers of a core have been served.
    fn ticked(&mut self, _core: usize, _now: Now, _all: &mut [Expected]) {}

    /// Called at the end of a core's turn. Fails with what should have been done by now.
    fn turned(&mut self, _core: usize, _now: Now, _all: &mut [Expected]) -> Result<(), String> {
        Ok(())
    }

    /// Called at the end of a history. Fails with what should have happened in it.
    fn over(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Called when a peer has received the bytes in `new`, which are within the expected length.
    /// Appends what it sends in return to `answer`.
    #[expect(clippy::too_many_arguments, reason = "all that a check may look at")]
    fn received(
        &mut self,
        _who: usize,
        _now: Now,
        expected: &Expected,
        received: &[u8],
        new: Range<usize>,
        _answer: &mut Vec<u8>,
    ) -> Result<(), String> {
        same(&expected.output[new.clone()], &received[new.clone()], new.start)
    }

    /// Whether a job may run at once.
    fn is_short(&self, _job: &<Self::Engine as Engine>::Job) -> bool {
        true
    }

    /// Runs a job, and appends its reply.
    fn work(&mut self, job: <Self::Engine as Engine>::Job, now: Now, reply: &mut Vec<u8>) -> Flow;
}

/// Compares received with expected bytes. `from` is the offset of the first one, for the message.
pub fn same(expected: &[u8], received: &[u8], from: usize) -> Result<(), String> {
    if expected == received {
        return Ok(());
    }
    let at = expected.iter().zip(received).take_while(|(a, b)| a == b).count();
    let show = |bytes: &[u8]| bytes[at..bytes.len().min(at + 40)].escape_ascii().to_string();
    let (expected, received) = (show(expected), show(received));
    Err(format!("byte {}: expected \"{expected}\", received \"{received}\"", from + at))
}
