//! The scripts that clients follow.

use std::{collections::VecDeque, time::Duration};

/// One step of a client's script.
#[derive(Clone, Debug)]
pub enum Act {
    /// These bytes arrive. One read returns them if it has room.
    Send(Vec<u8>),
    Pause(Duration),
    /// Changes how the client acknowledges data from now on.
    Take(Taking),
    HalfClose,
    Reset,
}

/// How a client acknowledges the data sent to it.
#[derive(Clone, Copy, Debug)]
pub enum Taking {
    /// All of it, at once.
    Everything,
    Nothing,
    /// This many bytes at the end of each interval.
    Steadily(usize, Duration),
}

/// The script of a client, and the properties of its connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub acts: VecDeque<Act>,
    pub send_buffer: usize,
    pub job: Duration,
    pub interrupts: bool,
}

impl Client {
    /// A client that sends nothing and acknowledges everything.
    pub fn new() -> Self {
        let (acts, send_buffer) = (VecDeque::new(), usize::MAX);
        Client { acts, send_buffer, job: Duration::ZERO, interrupts: false }
    }

    /// A client that sends these pieces and then closes its side.
    pub fn of(pieces: &[Vec<u8>]) -> Self {
        pieces.iter().fold(Client::new(), |client, piece| client.send(piece)).half_close()
    }

    fn act(mut self, act: Act) -> Self {
        self.acts.push_back(act);
        self
    }

    pub fn send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.act(Act::Send(bytes.as_ref().to_vec()))
    }

    pub fn pause(self, length: Duration) -> Self {
        self.act(Act::Pause(length))
    }

    pub fn take(self, taking: Taking) -> Self {
        self.act(Act::Take(taking))
    }

    pub fn half_close(self) -> Self {
        self.act(Act::HalfClose)
    }

    pub fn reset(self) -> Self {
        self.act(Act::Reset)
    }

    /// Limits the unacknowledged bytes that the kernel holds.
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.send_buffer = bytes;
        self
    }

    /// Each long job takes this long.
    pub fn jobs_take(mut self, length: Duration) -> Self {
        self.job = length;
        self
    }

    /// A signal interrupts every other read and write of a blocking stream.
    pub fn interrupted(mut self) -> Self {
        self.interrupts = true;
        self
    }
}
