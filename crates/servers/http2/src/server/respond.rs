//! What a server sends: responses, cut by the frame size and by both windows (RFC 9113, 5.2 and 6.9).

use super::state::{Exchange, Server};
use crate::{code::ErrorCode, connection::streams::Slot, frame::write};

/// A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Its field block, `:status` included, without insertions: written with
    /// [`Indexing::Without`](crate::hpack::Indexing::Without).
    pub block: &'a [u8],
    /// Its content.
    pub content: &'a [u8],
}

/// A size update that empties the dynamic table (RFC 7541, 6.3).
const EMPTY_TABLE: u8 = 0x20;

impl Server {
    /// Answers a request. Content beyond the windows is kept, and sent when the client raises them. If the
    /// request is incomplete, its remaining content is not wanted, which the client learns by RST_STREAM
    /// (RFC 9113, 8.1). Returns `false`, and appends nothing, if the stream cannot be answered: it was
    /// answered before, reset, or never opened.
    #[inline]
    pub fn respond(&mut self, stream: u32, response: Response<'_>, out: &mut Vec<u8>) -> bool {
        let Some(slot) = self.connection.streams.get_mut(stream) else { return false };
        if slot.exchange.unsent.is_some() {
            return false;
        }
        let Response { block, content } = response;
        let room = slot.send_window.available().min(self.connection.send_window.available());
        if content.len() as u64 > u64::from(room) {
            self.respond_partly(stream, response, out);
            return true;
        }
        slot.send_window.take(content.len() as u32);
        self.connection.send_window.take(content.len() as u32);
        self.head((stream, content.is_empty()), block, out);
        if !content.is_empty() {
            let max_frame = self.connection.peer.max_frame_size;
            write::data(out, |_| (), (stream, true), content, max_frame);
        }
        self.sent(stream, out);
        true
    }

    /// Appends the head of an interim response (1xx), if the stream can be answered.
    pub fn inform(&mut self, stream: u32, block: &[u8], out: &mut Vec<u8>) {
        if self.is_open(stream) {
            self.head((stream, false), block, out);
        }
    }

    #[inline]
    fn head(&mut self, stream: (u32, bool), block: &[u8], out: &mut Vec<u8>) {
        let max_frame = self.connection.peer.max_frame_size;
        if self.updates_table {
            let block = [&[EMPTY_TABLE], block].concat();
            return write::headers(out, |_| (), stream, &block, max_frame);
        }
        write::headers(out, |_| (), stream, block, max_frame);
    }

    #[inline(never)]
    fn respond_partly(&mut self, stream: u32, response: Response<'_>, out: &mut Vec<u8>) {
        self.head((stream, false), response.block, out);
        let at = self.pending.add(stream, response.content);
        if let Some(slot) = self.connection.streams.get_mut(stream) {
            slot.exchange.unsent = Some(at);
        }
        self.continue_response(stream, out);
    }

    /// Sends as much of a response as the windows permit. Returns whether that is all of it.
    pub(super) fn continue_response(&mut self, stream: u32, out: &mut Vec<u8>) -> bool {
        let Some(&mut Slot {
            exchange: Exchange { unsent: Some(at), .. },
            ref mut send_window,
            ..
        }) = self.connection.streams.get_mut(stream)
        else {
            return false;
        };
        let unsent = self.pending.unsent(at);
        let room = send_window.available().min(self.connection.send_window.available());
        let now = unsent.len().min(room as usize);
        if now == 0 {
            return false;
        }
        send_window.take(now as u32);
        self.connection.send_window.take(now as u32);
        self.connection.idle_frames = 0;
        let is_last = now == unsent.len();
        let max_frame = self.connection.peer.max_frame_size;
        write::data(out, |_| (), (stream, is_last), &unsent[..now], max_frame);
        self.pending.advance(at, now);
        if is_last {
            self.sent(stream, out);
        }
        is_last
    }

    /// Sends as much of all responses as the windows permit, in the order in which they wait.
    pub(super) fn continue_responses(&mut self, out: &mut Vec<u8>) {
        if self.connection.send_window.available() == 0 {
            return;
        }
        for _ in 0..self.pending.len() {
            let Some(stream) = self.pending.next() else { return };
            if !self.continue_response(stream, out) {
                self.pending.wait_again(stream);
            }
        }
    }

    /// A response was sent completely.
    #[inline]
    fn sent(&mut self, stream: u32, out: &mut Vec<u8>) {
        self.reset_streams = self.reset_streams.saturating_sub(1);
        let Some(slot) = self.connection.streams.get(stream) else { return };
        if !slot.exchange.is_whole {
            let window = slot.receive_window.available();
            self.remove(stream);
            self.connection.resets.push(stream);
            if let Some(oldest) = self.answered.push(stream, window) {
                write::reset(out, oldest, ErrorCode::NO_ERROR);
            }
        } else if slot.exchange.unsent.is_none() {
            self.connection.streams.remove(stream);
        } else {
            self.remove(stream);
        }
    }
}
