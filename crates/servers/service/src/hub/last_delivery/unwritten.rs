//! The sampled messages in the output of a member.

use regatta_engine::OutputState;
use std::{collections::VecDeque, mem};

/// Sampled messages in the output of a member, held until the kernel has accepted them. There are no more of them
/// than messages in the output.
#[derive(Debug)]
pub(in super::super) struct Unwritten<P>(VecDeque<(u64, P)>);

/// The end of a message that was appended since the last look.
const FRESH: u64 = u64::MAX;

impl<P> Default for Unwritten<P> {
    fn default() -> Self {
        Unwritten(VecDeque::new())
    }
}

impl<P> Unwritten<P> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a message that was appended to the output.
    pub fn add(&mut self, push: P) {
        self.0.push_back((FRESH, push));
    }

    /// Lets go of those that the kernel has accepted. Those that were added since the last call end with the output
    /// as it is now, before more is appended: TLS may have added bytes to it.
    #[inline]
    pub fn look(&mut self, output: OutputState) {
        if !self.is_empty() {
            self.let_go(output);
        }
    }

    #[cold]
    fn let_go(&mut self, output: OutputState) {
        let now = output.accepted + output.pending as u64;
        let fresh = self.0.iter_mut().rev().take_while(|(end, _)| *end == FRESH);
        fresh.for_each(|(end, _)| *end = now);
        while self.0.pop_front_if(|(end, _)| *end <= output.accepted).is_some() {}
        if self.is_empty() {
            // A waiting member keeps no memory.
            self.clear();
        }
    }

    /// Lets go of all.
    pub fn clear(&mut self) {
        drop(mem::take(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_held_until_the_output_up_to_it_is_accepted() {
        let mut unwritten = Unwritten::default();
        let mut look = |added: Option<u8>, accepted, pending| {
            unwritten.look(OutputState { accepted, pending, taken: 0 });
            added.into_iter().for_each(|added| unwritten.add(added));
            unwritten.0.iter().map(|(_, push)| *push).collect::<Vec<_>>()
        };
        assert_eq!(look(Some(1), 1_000, 7), [1]);
        // The output up to it has 50 bytes, none of which is written.
        assert_eq!(look(Some(2), 1_000, 50), [1, 2]);
        assert_eq!(look(None, 1_049, 90), [1, 2], "one byte of it is missing");
        assert_eq!(look(Some(3), 1_050, 89), [2, 3]);
        // The socket accepts as much as is appended, and never all of it.
        assert_eq!(look(None, 1_138, 100), [2, 3]);
        assert_eq!(look(None, 1_139, 100), [3]);
        assert_eq!(look(None, 1_300, 100), [0; 0]);
    }
}
