//! Streams whose response was sent before their request was complete. The client is asked to send no more of it, by
//! RST_STREAM with NO_ERROR (RFC 9113, 8.1), but not in the same write as the response: curl 7.88 loses what it has not
//! passed on when the stream is reset.

use std::collections::VecDeque;

/// Number of streams that are remembered.
const REMEMBERED: usize = 16;

/// The streams, the oldest first, each with what remains of its receive window.
#[derive(Debug, Default)]
pub(super) struct Answered {
    streams: VecDeque<(u32, u32)>,
}

impl Answered {
    /// Remembers a stream. Returns the oldest one if there are too many: it must be reset now.
    pub(super) fn push(&mut self, stream: u32, window: u32) -> Option<u32> {
        self.streams.push_back((stream, window));
        if self.streams.len() <= REMEMBERED {
            return None;
        }
        self.streams.pop_front().map(|(oldest, _)| oldest)
    }

    /// The client has reset the stream.
    pub(super) fn forget(&mut self, stream: u32) {
        self.streams.retain(|(number, _)| *number != stream);
    }

    /// A DATA frame came for a stream that is not open. Returns whether the stream must be reset now: it was answered, the
    /// request goes on, and the response was written (`is_written`) or the client could not send more anyway.
    pub(super) fn must_reset(
        &mut self,
        stream: u32,
        length: u32,
        ends: bool,
        is_written: bool,
    ) -> bool {
        let Some(at) = self.streams.iter().position(|(number, _)| *number == stream) else {
            return false;
        };
        let window = &mut self.streams[at].1;
        *window = window.saturating_sub(length);
        let is_due = is_written || *window == 0;
        if ends || is_due {
            self.streams.remove(at);
        }
        is_due && !ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_reset_once_when_its_response_was_written() {
        let mut answered = Answered::default();
        assert_eq!(answered.push(1, 100), None);
        assert!(!answered.must_reset(3, 10, false, true), "another stream");
        assert!(!answered.must_reset(1, 10, false, false), "in the same write");
        assert!(answered.must_reset(1, 10, false, true));
        assert!(!answered.must_reset(1, 10, false, true), "only once");
    }

    #[test]
    fn a_stream_whose_window_is_used_is_reset_at_once() {
        let mut answered = Answered::default();
        answered.push(1, 100);
        assert!(!answered.must_reset(1, 99, false, false));
        assert!(answered.must_reset(1, 1, false, false));
    }

    #[test]
    fn a_request_that_ends_is_not_reset() {
        let mut answered = Answered::default();
        answered.push(1, 100);
        assert!(!answered.must_reset(1, 100, true, true));
        assert!(!answered.must_reset(1, 1, false, true), "it is forgotten");
    }

    #[test]
    fn a_stream_that_the_client_reset_is_forgotten() {
        let mut answered = Answered::default();
        answered.push(1, 100);
        answered.push(3, 100);
        answered.forget(1);
        assert!(!answered.must_reset(1, 1, false, true) && answered.must_reset(3, 1, false, true));
    }

    #[test]
    fn the_oldest_of_too_many_is_reset() {
        let mut answered = Answered::default();
        for nth in 0..REMEMBERED as u32 {
            assert_eq!(answered.push(2 * nth + 1, 1), None);
        }
        assert_eq!(answered.push(99, 1), Some(1));
        assert!(!answered.must_reset(1, 1, false, true) && answered.must_reset(3, 1, false, true));
    }
}
