//! Results that count fewer listeners than there were members. A hub counts a connection that it closes no longer, and
//! the load may get such a result before it sees the close.

use crate::time::Nanos;
use regatta_record::Exchange;
use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Time after the send of a broadcast in which the load sees the close of connections that its result no longer counts.
const SEEN: Nanos = 1_000_000_000;
/// Maximum number of such results that are open. A further one is wrong at once.
const MOST: usize = 1024;

/// Such results to the members of this process that may still turn out to be right.
#[derive(Debug, Default)]
pub(in crate::dialects::websocket) struct FewListeners {
    /// Whether there are some.
    any: AtomicBool,
    open: Mutex<Vec<Few>>,
}

/// A result that counts too few.
#[derive(Debug)]
pub(in crate::dialects::websocket) struct Few {
    /// Number of members whose connections the server must have closed, since the load began, if it is right.
    pub closed: u64,
    /// When its broadcast was sent.
    pub at: Nanos,
    pub exchange: Box<Exchange>,
}

impl FewListeners {
    /// Adds a result.
    ///
    /// # Errors
    /// Its exchange, if [`MOST`] are open.
    #[cold]
    pub fn add(&self, few: Few) -> Result<(), Box<Exchange>> {
        let mut open = self.open();
        if open.len() >= MOST {
            return Err(few.exchange);
        }
        open.push(few);
        self.any.store(true, Relaxed);
        Ok(())
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Takes the results that are wrong at this time, if the server has closed so many connections of members.
    #[cold]
    pub fn wrong(&self, now: Nanos, closed: u64) -> Vec<Exchange> {
        let mut open = self.open();
        open.retain(|few| few.closed > closed);
        let is_over = |few: &Few| now.saturating_sub(few.at) >= SEEN;
        let (wrong, rest): (Vec<Few>, Vec<Few>) =
            mem::take(&mut *open).into_iter().partition(is_over);
        self.any.store(!rest.is_empty(), Relaxed);
        *open = rest;
        wrong.into_iter().map(|few| *few.exchange).collect()
    }

    fn open(&self) -> MutexGuard<'_, Vec<Few>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_right_if_enough_connections_were_closed_in_time() {
        let few = FewListeners::default();
        let add = |closed, at| {
            let (expected, [sent, received]) = (format!("{closed} at {at}"), Default::default());
            let exchange = Exchange { sent, expected, received, reply_index: 0 };
            few.add(Few { closed, at, exchange: Box::new(exchange) })
        };
        let wrong = |now, closed| -> Vec<String> {
            few.wrong(now, closed).into_iter().map(|one| one.expected).collect()
        };
        assert!(!few.any());
        (1..=3).for_each(|closed| assert_eq!(add(closed, 100), Ok(())));
        assert_eq!((wrong(100 + SEEN - 1, 1), few.any()), (Vec::new(), true));
        assert_eq!((wrong(100 + SEEN, 2), few.any()), (vec!["3 at 100".to_owned()], false));
        (0..MOST).for_each(|_| assert_eq!(add(9, 0), Ok(())));
        assert_eq!(add(9, 7).unwrap_err().expected, "9 at 7");
        assert_eq!((wrong(Nanos::MAX, 8).len(), few.any()), (MOST, false));
    }
}
