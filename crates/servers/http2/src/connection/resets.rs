//! Streams that this client reset. The server may not know it yet, and still send frames on them, which
//! are discarded (RFC 9113, 5.1).

use std::collections::VecDeque;

/// Number of streams that are remembered.
const REMEMBERED: usize = 256;

/// The streams that were reset last.
#[derive(Debug)]
pub(crate) struct Resets {
    last: VecDeque<u32>,
    /// The largest stream that was forgotten. Frames on older streams cannot be judged.
    forgotten: u32,
}

impl Default for Resets {
    fn default() -> Self {
        Resets { last: VecDeque::with_capacity(REMEMBERED), forgotten: 0 }
    }
}

impl Resets {
    pub fn push(&mut self, stream: u32) {
        if self.last.len() == REMEMBERED
            && let Some(oldest) = self.last.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest);
        }
        self.last.push_back(stream);
    }

    /// Whether frames may arrive on a stream that is closed.
    pub fn permits(&self, stream: u32) -> bool {
        stream <= self.forgotten || self.last.contains(&stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_stream_is_still_permitted_and_a_later_one_is_not() {
        let mut resets = Resets::default();
        assert!(!resets.permits(1));
        for nth in 0..REMEMBERED as u32 {
            resets.push(4 * nth + 1);
        }
        assert!(resets.permits(1) && !resets.permits(3) && resets.permits(5));
        resets.push(4 * REMEMBERED as u32 + 1);
        assert!(resets.permits(1) && resets.permits(5) && !resets.permits(7));
        assert_eq!(resets.last.len(), REMEMBERED);
    }
}
