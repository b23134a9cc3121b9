//! The behaviour of a simulated peer: a random plan.

use super::Random;
use std::time::Duration;

/// What a peer does once it has sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It closes its side, and reads to the end.
    HalfClose,
    /// It waits for the server to close.
    Await,
    /// It closes its socket.
    Close,
    Reset,
    /// It sends nothing more, not even acknowledgements.
    Vanish,
}

/// How a peer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Greedy,
    /// Reads some bytes, then pauses for some microseconds.
    Slow {
        bytes: usize,
        pause: u64,
    },
    /// Stops reading after this many bytes.
    Until(usize),
}

/// What a peer does when the server has closed its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Close,
    Nothing,
    /// It keeps sending the rest of its input, at least this many bytes in total.
    Flood(usize),
}

impl Then {
    /// Limits a flood to 1 KiB, where a longer one would take too many events.
    pub fn with_small_flood(self) -> Self {
        match self {
            Then::Flood(bytes) => Then::Flood(bytes.min(1 << 10)),
            then => then,
        }
    }
}

/// A peer. Times are microseconds of the history.
#[derive(Debug)]
pub(super) struct Peer {
    /// All that it sends.
    pub input: Vec<u8>,
    pub sent: usize,
    /// Maximum bytes per piece, and maximum microseconds between pieces.
    pub piece: usize,
    pub pause: u64,
    pub send_at: Option<u64>,
    pub read_at: Option<u64>,
    /// The server's receive buffer is full.
    pub blocked: bool,
    /// How often it waits for another request, before it ends.
    pub lulls: usize,
    pub ending: Ending,
    pub reading: Reading,
    pub then: Then,
    /// All that it has read.
    pub received: Vec<u8>,
    /// It resets the connection this many microseconds after it has closed its side.
    pub gives_up: Option<u64>,
    /// It has closed its side.
    pub ended: bool,
    /// It has left on its own: it closed its socket, reset the connection, or vanished.
    pub left: bool,
    /// It does nothing more.
    pub done: bool,
}

impl Default for Peer {
    fn default() -> Self {
        Peer {
            input: Vec::new(),
            sent: 0,
            piece: 1,
            pause: 0,
            send_at: None,
            read_at: None,
            blocked: false,
            lulls: 0,
            ending: Ending::HalfClose,
            reading: Reading::Greedy,
            then: Then::Close,
            received: Vec::new(),
            gives_up: None,
            ended: false,
            left: false,
            done: false,
        }
    }
}

impl Peer {
    pub fn clear(&mut self) {
        let Peer { mut input, mut received, .. } = std::mem::take(self);
        input.clear();
        received.clear();
        *self = Peer { input, received, ..Peer::default() };
    }

    /// Makes a plan. The input must be set.
    pub fn plan(&mut self, random: &mut Random, idle: Duration) {
        let idle = idle.as_micros() as u64;
        let len = self.input.len();
        self.piece = match random.weighted(&[2, 3, 5]) {
            0 => len.max(1),
            1 => len / 16 + 1,
            _ => random.magnitude(1, 1 << 12) as usize,
        };
        // A long input in small pieces takes too many events.
        self.piece = self.piece.max(len / 20 + 1);
        self.pause = random.pick(&[0, 300, 5_000, idle / 8, idle / 3]);
        self.reading = match random.weighted(&[65, 20, 15]) {
            0 => Reading::Greedy,
            1 => {
                let bytes = (random.magnitude(1, 1 << 12) as usize).max(len / 24);
                Reading::Slow { bytes, pause: random.magnitude(100, idle * 4 / 5) }
            }
            _ => Reading::Until(random.below(3 * len + 1)),
        };
        self.ending = match random.weighted(&[50, 27, 8, 8, 7]) {
            0 => Ending::HalfClose,
            1 => Ending::Await,
            2 => Ending::Close,
            3 => Ending::Reset,
            _ => Ending::Vanish,
        };
        self.gives_up = random.chance(200).then(|| random.between(0, idle / 2));
        // Peers that reset or vanish, and some that wait for the server to close, stop sending at a
        // random byte, usually in the middle of a request.
        let leaves = matches!(self.ending, Ending::Reset | Ending::Vanish);
        if leaves || self.ending == Ending::Await && random.chance(400) {
            self.input.truncate(random.below(len + 1));
        }
        self.then = match random.weighted(&[66, 15, 12, 7]) {
            0 => Then::Close,
            1 => Then::Nothing,
            2 => Then::Flood(random.magnitude(1, 1 << 10) as usize),
            _ if random.chance(300) => Then::Flood((1 << 20) + 1),
            _ => Then::Flood(0),
        };
    }
}
