//! A TCP connection between a simulated peer and the server: the kernel buffers of both sides.
//!
//! Resets follow Linux. The kernel sends a reset when a socket is closed with unread input, and
//! when bytes arrive at a socket with both directions shut down. A reset discards what the server's
//! kernel has not delivered. Input that has arrived can still be read.

/// A queue of bytes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    start: usize,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn front(&self, bytes: usize) -> &[u8] {
        &self.bytes[self.start..self.start + bytes]
    }

    pub fn drop_front(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.bytes.len() {
            self.clear();
        }
    }

    /// Removes the bytes pushed last.
    pub fn unpush(&mut self, bytes: usize) {
        self.bytes.truncate(self.bytes.len() - bytes);
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(usize),
    End,
    Blocked,
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Arrived at the server, but not read.
    pub inbox: Queue,
    pub inbox_capacity: usize,
    /// Total bytes that have arrived at the server.
    pub arrived: usize,
    /// The peer has closed its side.
    pub peer_ended: bool,
    /// The peer has closed its socket: it answers further bytes with a reset.
    pub peer_closed: bool,
    /// The peer is unreachable, and nothing arrives from it.
    pub vanished: bool,
    /// The peer has sent a reset.
    pub reset: bool,
    /// Written by the server, but not acknowledged.
    pub sending: Queue,
    pub send_capacity: usize,
    /// Acknowledged, but not read by the peer.
    pub delivered: Queue,
    pub delivered_capacity: usize,
    /// The server has sent a reset.
    pub peer_reset: bool,
    /// The server has shut down its sending side.
    pub finished: bool,
    /// The server has shut down its input (a stop).
    pub read_shut: bool,
    /// The server has closed its socket.
    pub closed: bool,
}

impl Wire {
    pub fn clear(&mut self) {
        let Wire { mut inbox, mut sending, mut delivered, .. } = std::mem::take(self);
        inbox.clear();
        sending.clear();
        delivered.clear();
        *self = Wire { inbox, sending, delivered, ..Wire::default() };
    }

    // ---- the peer ----

    /// The peer sends. Returns how many bytes were accepted.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        if self.vanished || self.reset || self.peer_reset {
            return bytes.len();
        }
        if self.closed || self.finished && self.read_shut {
            self.refuse();
            return bytes.len();
        }
        let fits = bytes.len().min(self.inbox_capacity - self.inbox.len());
        self.inbox.push(&bytes[..fits]);
        self.arrived += fits;
        fits
    }

    /// The server's kernel answers with a reset.
    fn refuse(&mut self) {
        self.peer_reset = true;
        self.reset = true;
        self.sending.clear();
    }

    pub fn send_reset(&mut self) {
        if !self.vanished {
            self.reset = true;
            self.sending.clear();
        }
    }

    /// The network delivers at most `most` bytes. Returns how many the peer acknowledges.
    pub fn deliver(&mut self, most: usize) -> usize {
        if self.vanished || self.reset || self.peer_reset {
            return 0;
        }
        if self.peer_closed && !self.sending.is_empty() {
            self.send_reset();
            return 0;
        }
        let room = self.delivered_capacity - self.delivered.len();
        let bytes = most.min(room).min(self.sending.len());
        self.delivered.push(self.sending.front(bytes));
        self.sending.drop_front(bytes);
        bytes
    }

    /// Whether the end of the server's output has arrived at the peer.
    pub fn has_ended(&self) -> bool {
        (self.finished || self.closed) && self.sending.is_empty() && !self.vanished
    }

    // ---- the server ----

    pub fn read(&mut self, into: &mut [u8]) -> Read {
        if !self.inbox.is_empty() {
            let bytes = into.len().min(self.inbox.len());
            into[..bytes].copy_from_slice(self.inbox.front(bytes));
            self.inbox.drop_front(bytes);
            return Read::Bytes(bytes);
        }
        match () {
            () if self.reset => Read::Failed,
            () if self.peer_ended || self.read_shut => Read::End,
            () => Read::Blocked,
        }
    }

    /// Returns the number of bytes accepted; `None` after a reset.
    pub fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.reset {
            return None;
        }
        let fits = bytes.len().min(self.room());
        self.sending.push(&bytes[..fits]);
        Some(fits)
    }

    pub fn room(&self) -> usize {
        self.send_capacity.saturating_sub(self.sending.len())
    }

    /// Whether the kernel reports the socket as writable. Linux does so once a third of the buffer
    /// is free.
    pub fn is_writable(&self) -> bool {
        self.reset || self.sending.len() <= self.send_capacity * 2 / 3
    }

    pub fn is_readable(&self) -> bool {
        !self.inbox.is_empty() || self.peer_ended || self.read_shut || self.reset
    }

    pub fn is_gone(&self) -> bool {
        self.reset || self.finished && (self.peer_ended || self.read_shut)
    }

    /// Whether no more input follows what has arrived.
    pub fn input_has_ended(&self) -> bool {
        self.reset || self.peer_ended || self.read_shut
    }

    pub fn unacknowledged(&self) -> usize {
        self.sending.len()
    }

    pub fn close(&mut self) {
        self.closed = true;
        if !self.inbox.is_empty() {
            self.refuse();
        }
    }
}
