//! How many messages of a hub may be at the broker at once: as many as come back quickly. A hub that delivers more slowly
//! than its members publish so keeps what is too much for itself, where it is sure that nobody has it.

use std::time::Duration;

/// The number at first, and its bounds.
const FIRST: usize = 64;
const LEAST: usize = 4;
const MOST: usize = 4096;
/// A message that comes back within this makes room for one more.
const QUICK: Duration = Duration::from_millis(100);
/// One that takes longer halves the number, once for all that were on their way.
const SLOW: Duration = Duration::from_millis(400);

/// The number of messages that may be at the broker.
#[derive(Debug)]
pub(super) struct Window {
    most: usize,
    /// So many may come back until it is halved again.
    spared: usize,
}

impl Default for Window {
    fn default() -> Self {
        Window { most: FIRST, spared: 0 }
    }
}

impl Window {
    /// The number now.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// A message has come back after this time. `others`: how many are still on their way.
    pub(super) fn returns(&mut self, after: Duration, others: usize) {
        self.spared = self.spared.saturating_sub(1);
        if after <= QUICK {
            self.most = MOST.min(self.most + 1);
        } else if after > SLOW && self.spared == 0 {
            self.most = LEAST.max(self.most / 2);
            self.spared = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_quick_messages_and_is_halved_once_for_all_that_are_slow() {
        let mut window = Window::default();
        (0..9999).for_each(|_| window.returns(QUICK, 10));
        assert_eq!(window.most(), MOST);
        (0..10).for_each(|_| window.returns(Duration::from_millis(300), 10));
        assert_eq!(window.most(), MOST, "neither");
        (0..10).for_each(|_| window.returns(Duration::from_secs(1), 10));
        assert_eq!(window.most(), MOST / 2);
        (0..999).for_each(|_| window.returns(Duration::from_secs(1), 3));
        assert_eq!(window.most(), LEAST);
    }
}
