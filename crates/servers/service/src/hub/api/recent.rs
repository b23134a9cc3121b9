//! Idempotency keys: a publication that a backend repeats, because it got no reply, is published once.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a key is remembered.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);
/// Maximum number of keys that are remembered.
const MOST: usize = 65_536;

/// The keys of recent publications.
#[derive(Debug, Default)]
pub(super) struct Recent {
    known: HashSet<Arc<str>>,
    /// In the order in which they came.
    order: VecDeque<(Instant, Arc<str>)>,
}

/// There are too many keys: none may be forgotten yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Recent {
    /// Remembers a key, and returns whether it is new.
    ///
    /// # Errors
    /// Fails if there is no room for it.
    pub(super) fn is_new(&mut self, key: &str, now: Instant) -> Result<bool, Full> {
        while let Some((_, old)) =
            self.order.pop_front_if(|(came, _)| now.saturating_duration_since(*came) >= REMEMBERED)
        {
            self.known.remove(&old);
        }
        if self.known.contains(key) {
            return Ok(false);
        }
        if self.known.len() >= MOST {
            return Err(Full);
        }
        let key: Arc<str> = key.into();
        self.known.insert(Arc::clone(&key));
        self.order.push_back((now, key));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_remembered_for_five_minutes() {
        let start = Instant::now();
        let mut recent = Recent::default();
        assert_eq!(recent.is_new("a", start), Ok(true));
        assert_eq!(recent.is_new("b", start + Duration::from_secs(1)), Ok(true));
        assert_eq!(recent.is_new("a", start + REMEMBERED - Duration::from_nanos(1)), Ok(false));
        assert_eq!(recent.is_new("a", start + REMEMBERED), Ok(true), "not prolonged");
        assert_eq!(recent.is_new("b", start + REMEMBERED), Ok(false));
        assert_eq!((recent.known.len(), recent.order.len()), (2, 2));
    }

    #[test]
    fn no_key_is_forgotten_early() {
        let start = Instant::now();
        let mut recent = Recent::default();
        for n in 0..MOST {
            assert_eq!(recent.is_new(&n.to_string(), start), Ok(true));
        }
        assert_eq!(recent.is_new("more", start), Err(Full));
        assert_eq!(recent.is_new("0", start), Ok(false));
        assert_eq!(recent.is_new("more", start + REMEMBERED), Ok(true));
        assert_eq!(recent.known.len(), 1);
    }
}
