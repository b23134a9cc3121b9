//! Messages over a carrier that loses packets (pure): packets and times come in, segments and messages come out.
//!
//! NATS delivers each packet at most once: what is sent while the other side is not connected is lost. So each side
//! numbers the bytes that it writes, keeps them until the other side has acknowledged them, and sends them again if
//! that takes too long. The receiver takes bytes in order only, and drops what it has received before. How much is
//! under way follows from how soon acknowledgements come (`flow`).
//!
//! Each message has its length and its SHA-256 before it.

mod flow;

use self::flow::Flow;
use super::packet::Segment;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use std::collections::VecDeque;

/// Maximum length of a message, in bytes: that of `regatta_load::wire`.
pub(super) const LONGEST: usize = 256 << 20;
/// While this many bytes are not acknowledged, nothing more should be written.
pub(super) const FULL: usize = 4 << 20;
/// Bytes before a message.
const HEADER: usize = 4 + SHA256_OUTPUT_LEN;

/// One side of a session.
#[derive(Debug)]
pub(super) struct Stream {
    /// Longest segment, in bytes.
    longest: u64,
    /// Bytes that were written and not acknowledged.
    out: VecDeque<u8>,
    /// Number of bytes that the other side has acknowledged.
    acked: u64,
    /// Number of bytes that were sent.
    sent: u64,
    flow: Flow,
    /// When the first segment that is not acknowledged is sent again.
    resends_at_ns: Option<u64>,
    /// Number of bytes that were received.
    received: u64,
    /// Whether the other side must learn what was received.
    owes: bool,
    /// The bytes of a message that is not complete.
    partial: Vec<u8>,
}

impl Stream {
    /// A side that has written and received nothing. Its segments have at most `longest` bytes of data.
    pub fn new(longest: usize) -> Stream {
        Stream {
            longest: longest as u64,
            out: VecDeque::new(),
            acked: 0,
            sent: 0,
            flow: Flow::new(longest as u64),
            resends_at_ns: None,
            received: 0,
            owes: false,
            partial: Vec::new(),
        }
    }

    /// Writes a message of at most [`LONGEST`] bytes.
    pub fn write(&mut self, message: &[u8]) {
        self.out.extend((message.len() as u32).to_le_bytes());
        self.out.extend(digest(&SHA256, message).as_ref());
        self.out.extend(message);
    }

    /// Whether a further message should be written now.
    pub fn has_room(&self) -> bool {
        self.out.len() < FULL
    }

    /// Whether the other side has received all that was written.
    pub fn is_delivered(&self) -> bool {
        self.out.is_empty()
    }

    /// Number of bytes that were sent and not acknowledged.
    pub fn under_way(&self) -> u64 {
        self.sent - self.acked
    }

    /// Number of bytes that were received. It grows with everything new that the other side has written, and not with
    /// acknowledgements and repetitions.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the next segment to send now, if there is one.
    pub fn segment(&mut self, now_ns: u64) -> Option<Segment> {
        if self.resends_at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            (self.sent, self.resends_at_ns) = (self.acked, None);
            self.flow.lost(self.acked);
        }
        let in_flight = self.sent - self.acked;
        let unsent = self.out.len() as u64 - in_flight;
        let length = unsent.min(self.longest).min(self.flow.room(in_flight, unsent));
        if length == 0 && !self.owes {
            return None;
        }
        let range = in_flight as usize..(in_flight + length) as usize;
        let segment = Segment {
            offset: self.sent,
            ack: self.received,
            bytes: self.out.range(range).copied().collect(),
        };
        if length > 0 {
            self.flow.sent(self.sent, self.sent + length, now_ns);
            let again_ns = now_ns.saturating_add(self.flow.again_after_ns());
            self.resends_at_ns.get_or_insert(again_ns);
        }
        (self.sent, self.owes) = (self.sent + length, false);
        Some(segment)
    }

    /// When [`Stream::segment`] has something to send again, if nothing comes until then.
    pub fn due_ns(&self) -> Option<u64> {
        self.resends_at_ns
    }

    /// The carrier was interrupted: everything that is not acknowledged is sent again at once.
    pub fn reconnected(&mut self) {
        (self.sent, self.resends_at_ns, self.owes) = (self.acked, None, true);
        self.flow.interrupted();
    }

    /// Takes a segment of the other side. Returns the messages that are complete now.
    ///
    /// # Errors
    /// What is impossible about it, as a clause. Nothing may follow then.
    pub fn receive(&mut self, segment: &Segment, now_ns: u64) -> Result<Vec<Vec<u8>>, String> {
        let Segment { offset, ack, bytes } = segment;
        self.acknowledged(*ack, now_ns)?;
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        self.owes = true;
        let known = self.received.checked_sub(*offset).and_then(|n| usize::try_from(n).ok());
        let Some(fresh) = known.and_then(|known| bytes.get(known..)) else {
            // Received before, or something before it is missing.
            return Ok(Vec::new());
        };
        self.received += fresh.len() as u64;
        self.partial.extend_from_slice(fresh);
        self.complete()
    }

    fn acknowledged(&mut self, ack: u64, now_ns: u64) -> Result<(), String> {
        let written = self.acked + self.out.len() as u64;
        if ack > written {
            return Err(format!("it acknowledged {ack} bytes of {written}"));
        }
        if ack > self.acked {
            self.out.drain(..(ack - self.acked) as usize);
            self.acked = ack;
            self.sent = self.sent.max(ack);
            self.flow.acknowledged(ack, now_ns);
            let waits = self.sent > self.acked;
            let again_ns = now_ns.saturating_add(self.flow.again_after_ns());
            self.resends_at_ns = waits.then_some(again_ns);
        }
        Ok(())
    }

    /// Takes the complete messages out of what was received.
    fn complete(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let (mut messages, mut at) = (Vec::new(), 0);
        while let Some((length, rest)) = self.partial[at..].split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            if length > LONGEST {
                return Err(format!(
                    "it began a message of {length} bytes: expected at most {LONGEST}"
                ));
            }
            let Some((hash, rest)) = rest.split_at_checked(SHA256_OUTPUT_LEN) else { break };
            let Some(message) = rest.get(..length) else { break };
            if digest(&SHA256, message).as_ref() != hash {
                return Err("it sent a message whose SHA-256 is wrong".into());
            }
            messages.push(message.to_vec());
            at += HEADER + length;
        }
        self.partial.drain(..at);
        Ok(messages)
    }
}

#[cfg(test)]
mod tests;
