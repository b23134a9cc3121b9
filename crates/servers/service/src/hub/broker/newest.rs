//! The newest message received from each hub. Only hubs in a cluster need it: a master passes messages on to its replicas,
//! and one that was cut off or stopped may do so after a replica has taken its place.
//!
//! A hub numbers its messages, and does not begin again with a new connection. So a message whose number is not higher than
//! the newest one came before, or newer ones have overtaken it.

use std::collections::BTreeMap;

/// Maximum number of hubs. Beyond it, the one that has been silent for longest is forgotten.
const MOST: usize = 1024;

/// The newest number of each hub, and when it came.
#[derive(Debug, Default)]
pub(super) struct Newest {
    hubs: BTreeMap<u64, (u64, u64)>,
    /// The number of messages so far.
    count: u64,
}

impl Newest {
    /// Whether a message is newer than all that have come from this hub.
    pub(super) fn is_newer(&mut self, hub: u64, number: u64) -> bool {
        self.count += 1;
        if let Some(newest) = self.hubs.get_mut(&hub) {
            let is_newer = number > newest.0;
            if is_newer {
                *newest = (number, self.count);
            }
            return is_newer;
        }
        if self.hubs.len() == MOST
            && let Some((&silent, _)) = self.hubs.iter().min_by_key(|(_, (_, at))| *at)
        {
            self.hubs.remove(&silent);
        }
        self.hubs.insert(hub, (number, self.count));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_or_was_overtaken_is_not_newer() {
        let mut newest = Newest::default();
        for (hub, number, is_newer) in [
            (1, 0, true),
            (1, 0, false),
            (2, 0, true),
            (1, 5, true),
            (1, 4, false),
            (1, 5, false),
            (1, 6, true),
            (2, 1, true),
        ] {
            assert_eq!(newest.is_newer(hub, number), is_newer, "{number} of {hub}");
        }
    }

    #[test]
    fn only_hubs_that_have_been_silent_for_long_are_forgotten() {
        let mut newest = Newest::default();
        assert!(newest.is_newer(0, 7));
        for hub in 1..=MOST as u64 {
            assert!(newest.is_newer(hub, 7));
            assert!(newest.is_newer(0, 7 + hub), "it speaks");
        }
        assert_eq!(newest.hubs.len(), MOST);
        assert!(!newest.is_newer(0, 7) && !newest.is_newer(2, 7));
        assert!(newest.is_newer(1, 7), "it was forgotten");
    }
}
