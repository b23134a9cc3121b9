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
    /// Remembers a key for each of these rooms, and returns for which it is new.
    ///
    /// # Errors
    /// Fails if there is no room for all of them. Then none is remembered.
    pub(super) fn are_new<'a>(
        &mut self,
        rooms: impl ExactSizeIterator<Item = &'a str>,
        key: &str,
        now: Instant,
    ) -> Result<Vec<bool>, Full> {
        while let Some((_, old)) =
            self.order.pop_front_if(|(came, _)| now.saturating_duration_since(*came) >= REMEMBERED)
        {
            self.known.remove(&old);
        }
        if self.known.len() + rooms.len() > MOST {
            return Err(Full);
        }
        let mut is_new = |room: &str| {
            let key: Arc<str> = format!("{}:{room}{key}", room.len()).into();
            let is_new = self.known.insert(Arc::clone(&key));
            if is_new {
                self.order.push_back((now, key));
            }
            is_new
        };
        Ok(rooms.map(&mut is_new).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a key is new in one room.
    fn is_new(recent: &mut Recent, key: &str, now: Instant) -> Result<bool, Full> {
        recent.are_new(["room"].into_iter(), key, now).map(|all| all[0])
    }

    #[test]
    fn a_key_is_remembered_for_five_minutes() {
        let start = Instant::now();
        let mut recent = Recent::default();
        let mut is_new = |key, after| is_new(&mut recent, key, start + after);
        assert_eq!(is_new("a", Duration::ZERO), Ok(true));
        assert_eq!(is_new("b", Duration::from_secs(1)), Ok(true));
        assert_eq!(is_new("a", REMEMBERED - Duration::from_nanos(1)), Ok(false));
        assert_eq!(is_new("a", REMEMBERED), Ok(true), "not prolonged");
        assert_eq!(is_new("b", REMEMBERED), Ok(false));
        assert_eq!((recent.known.len(), recent.order.len()), (2, 2));
    }

    #[test]
    fn a_key_is_that_of_a_publication_in_one_room() {
        let (now, mut recent) = (Instant::now(), Recent::default());
        let mut are_new = |rooms: &[&str], key| recent.are_new(rooms.iter().copied(), key, now);
        assert_eq!(are_new(&["a", "b"], "1"), Ok(vec![true, true]));
        assert_eq!(are_new(&["b", "c", "c"], "1"), Ok(vec![false, true, false]));
        assert_eq!(are_new(&["a1", "", "a"], "2"), Ok(vec![true, true, true]));
        assert_eq!(are_new(&["a"], "12"), Ok(vec![true]), "and not that of a1");
        assert_eq!(are_new(&["a1"], "2"), Ok(vec![false]));
    }

    #[test]
    fn no_key_is_forgotten_early() {
        let start = Instant::now();
        let mut recent = Recent::default();
        for n in 0..MOST {
            assert_eq!(is_new(&mut recent, &n.to_string(), start), Ok(true));
        }
        assert_eq!(is_new(&mut recent, "more", start), Err(Full));
        assert_eq!(is_new(&mut recent, "more", start + REMEMBERED), Ok(true));
        assert_eq!(recent.known.len(), 1);
    }
}
