//! What a simulation needs to know of an engine: what its peers send, and what they must see.

use super::{Random, Visit};
use crate::{Engine, Flow, Now};
use std::{net::SocketAddr, ops::Range, time::Instant};

/// What a peer must see, as an independent model has it. Kept by the scenario, compared by the
/// simulator.
#[derive(Debug, Default)]
pub struct Expected {
    /// All that is due for the input that the engine was given so far. The peer must always have
    /// received a prefix of it, and all of it after an orderly end.
    pub output: Vec<u8>,
    /// The service closes the connection after that. Later input is not interpreted.
    pub closes: bool,
    /// Since when the peer is inside a request.
    pub inside: Option<Instant>,
    /// Input and output up to the end of each request and its reply, for the bound on held input.
    pub marks: Vec<(usize, usize)>,
    /// The engine may close the connection on its own.
    pub may_abort: bool,
    /// The peer may be waiting for the engine: its silence need not be a timeout.
    pub waits: bool,
    /// The engine may keep the connection though nothing happens any more: that to another server.
    pub stays: bool,
    /// Input that the model has not interpreted yet, for the scenario's use.
    pub input: Vec<u8>,
    /// How much of it is interpreted, for the scenario's use.
    pub taken: usize,
}

impl Expected {
    pub(super) fn clear(&mut self) {
        let Expected { mut output, mut marks, mut input, .. } = std::mem::take(self);
        output.clear();
        marks.clear();
        input.clear();
        *self = Expected { output, marks, input, ..Expected::default() };
    }
}

/// An engine, its peers, and the model of what they must see. Peers are numbered: first the clients,
/// then the servers that the engine connects to, in their order.
pub trait Scenario {
    /// What is simulated.
    type Engine: Engine;

    /// For messages.
    const NAME: &'static str;

    /// What no history of it visits.
    const NEVER: &[Visit];

    /// The most output of a connection that may be pending, beyond the bytes of one read times
    /// [`Scenario::GROWTH`].
    const PENDING: usize;

    /// Bytes of output for a byte of input, at most, where output is not bounded otherwise.
    const GROWTH: usize;

    /// The most input that a connection may hold, beyond the bytes of two reads.
    const HELD: usize;

    /// The least pending output for which the engine may abort a connection.
    const BACKLOG: usize = 0;

    /// A new history. Returns the number of cores.
    fn begin(&mut self, random: &mut Random) -> usize;

    /// The engine of a core.
    fn engine(&mut self, core: usize) -> Self::Engine;

    /// What a peer sends on its own.
    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>);

    /// An engine connects to another server. Returns whether the server is there.
    fn connects(&mut self, _who: usize, _core: usize, _to: SocketAddr) -> bool {
        true
    }

    /// A connection is open.
    fn opened(&mut self, _who: usize, _core: usize, _now: Now, _all: &mut [Expected]) {}

    /// An engine is given these bytes of a peer.
    fn handed(&mut self, who: usize, now: Now, bytes: &[u8], all: &mut [Expected]);

    /// An engine hears that a peer sends nothing more.
    fn ended(&mut self, _who: usize, _now: Now, _all: &mut [Expected]) {}

    /// A connection is not open any more: nothing is appended to its output.
    fn left(&mut self, _who: usize, _all: &mut [Expected]) {}

    /// A letter is on its way to another core: it may cross as bytes.
    fn carried(
        &mut self,
        letter: <Self::Engine as Engine>::Letter,
    ) -> <Self::Engine as Engine>::Letter {
        letter
    }

    /// An engine is given a letter.
    fn heard(
        &mut self,
        _core: usize,
        _letter: &<Self::Engine as Engine>::Letter,
        _now: Now,
        _all: &mut [Expected],
    ) {
    }

    /// The timers of a core were served.
    fn ticked(&mut self, _core: usize, _now: Now, _all: &mut [Expected]) {}

    /// A turn of a core is over. Says what should have been done by now.
    fn turned(&mut self, _core: usize, _now: Now, _all: &mut [Expected]) -> Result<(), String> {
        Ok(())
    }

    /// A history is over. Says what should have happened in it.
    fn over(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// A peer has received the bytes in `new`, which are within what is expected. What it sends in
    /// return is appended to `answer`.
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

    /// Whether a job may be done at once.
    fn is_short(&self, _job: &<Self::Engine as Engine>::Job) -> bool {
        true
    }

    /// Does a job.
    fn work(&mut self, job: <Self::Engine as Engine>::Job, now: Now, reply: &mut Vec<u8>) -> Flow;
}

/// Compares what was received with what was expected, from this place on.
pub fn same(expected: &[u8], received: &[u8], from: usize) -> Result<(), String> {
    if expected == received {
        return Ok(());
    }
    let at = expected.iter().zip(received).take_while(|(a, b)| a == b).count();
    let show = |bytes: &[u8]| bytes[at..bytes.len().min(at + 40)].escape_ascii().to_string();
    let (expected, received) = (show(expected), show(received));
    Err(format!("byte {}: expected \"{expected}\", received \"{received}\"", from + at))
}
