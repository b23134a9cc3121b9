//! Results that count fewer listeners than there were members. A hub counts a connection that it closes no longer, and
//! the load may get such a result before it sees the close.

use crate::time::Nanos;
use regatta_record::Exchange;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Time after a result in which the load sees the close of connections that it no longer counts.
const SEEN: Nanos = 1_000_000_000;
/// Results that come within this time are kept together, so that there are at most about a hundred such times.
const TOGETHER: Nanos = 10_000_000;
/// Maximum number of different [`Few::closed`] of a time. A further one is kept with the highest of them.
const MOST: usize = 8;

/// Such results to the members of this process that may still turn out to be right.
#[derive(Debug, Default)]
pub(in crate::dialects::websocket) struct FewListeners {
    /// Whether there are some.
    any: AtomicBool,
    open: Mutex<Vec<Few>>,
}

/// Results that count too few.
#[derive(Debug)]
pub(in crate::dialects::websocket) struct Few {
    /// Number of members whose connections the server must have closed, since the load began, if they are right.
    pub closed: u64,
    /// When the first one came.
    pub at: Nanos,
    /// Number of these results.
    pub results: u64,
    /// The first one.
    pub exchange: Box<Exchange>,
}

impl FewListeners {
    /// Adds a result that came at this time, and is right if the server must have closed so many connections.
    #[cold]
    pub fn add(&self, closed: u64, at: Nanos, exchange: impl FnOnce() -> Box<Exchange>) {
        let mut open = self.open();
        let of_time = || open.iter().filter(|few| few.at / TOGETHER == at / TOGETHER);
        let highest = of_time().map(|few| few.closed).max();
        // If there are too many, it is kept with the highest one.
        let like = if of_time().count() < MOST { Some(closed) } else { highest };
        let is_like =
            |few: &&mut Few| few.at / TOGETHER == at / TOGETHER && Some(few.closed) == like;
        match open.iter_mut().find(is_like) {
            Some(few) => {
                few.closed = few.closed.max(closed);
                few.results += 1;
            }
            None => open.push(Few { closed, at, results: 1, exchange: exchange() }),
        }
        self.any.store(true, Relaxed);
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Takes the results that are wrong at this time, if the server has closed so many connections of members.
    #[cold]
    pub fn wrong(&self, now: Nanos, closed: u64) -> Vec<Few> {
        let mut open = self.open();
        open.retain(|few| few.closed > closed);
        let is_over = |few: &mut Few| now.saturating_sub(few.at) >= SEEN + TOGETHER;
        let wrong = open.extract_if(.., is_over).collect();
        self.any.store(!open.is_empty(), Relaxed);
        wrong
    }

    /// Whether some are right only if the server has closed more connections of members.
    #[inline]
    pub fn lack(&self, closed: u64) -> bool {
        self.any() && self.open().iter().any(|few| few.closed > closed)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Few>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(few: &FewListeners, closed: u64, at: Nanos) {
        let (expected, [sent, received]) = (format!("{closed} at {at}"), Default::default());
        let exchange = Exchange { sent, expected, received, reply_index: 0 };
        few.add(closed, at, || Box::new(exchange));
    }

    fn wrong(few: &FewListeners, now: Nanos, closed: u64) -> Vec<(String, u64)> {
        let wrong = few.wrong(now, closed).into_iter();
        wrong.map(|one| (one.exchange.expected, one.results)).collect()
    }

    #[test]
    fn a_result_is_right_if_enough_connections_were_closed_in_time() {
        let few = FewListeners::default();
        assert!(!few.any());
        (1..=3).for_each(|closed| add(&few, closed, 100));
        add(&few, 3, 101);
        let over = 100 + SEEN + TOGETHER;
        assert_eq!((wrong(&few, over - 1, 1), few.any()), (Vec::new(), true));
        assert_eq!([2, 3].map(|closed| few.lack(closed)), [true, false]);
        let expected = vec![("3 at 100".to_owned(), 2)];
        assert_eq!((wrong(&few, over, 2), few.any()), (expected, false));
    }

    /// A fast hub closes connections, one after the other, and the load sees that late.
    #[test]
    fn so_many_results_that_come_within_the_grace_are_kept_in_bounds() {
        let few = FewListeners::default();
        let each = || (0..SEEN).step_by(100_000);
        each().for_each(|at| add(&few, 1 + at / 100_000, at));
        let kept = few.open().len() as u64;
        assert!(kept <= MOST as u64 * SEEN / TOGETHER, "{kept}");
        assert_eq!(few.open().iter().map(|one| one.results).sum::<u64>(), each().count() as u64);
        assert_eq!(wrong(&few, SEEN - 1, 0), [], "none is over");
        let closed = SEEN / 100_000;
        assert_eq!(
            (wrong(&few, 2 * SEEN, closed), few.any()),
            (Vec::new(), false),
            "all are right"
        );
    }
}
