//! A paced drain: when each client of a core is closed, so that their reconnects are spread over a time.

use crate::Conn;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use std::time::{Duration, Instant};

/// The clients of a core that are still to be closed, each with its moment.
#[derive(Debug)]
pub(crate) struct Drain {
    /// The latest comes first.
    clients: Vec<(Instant, Conn)>,
    ends_at: Instant,
    random: SmallRng,
}

impl Drain {
    /// Spreads the clients over the time from `now` on, in random order: each of the n clients gets a random
    /// moment in another of n equal parts of the time.
    pub fn new(mut clients: Vec<Conn>, now: Instant, over: Duration, seed: u64) -> Drain {
        let mut random = SmallRng::seed_from_u64(seed);
        clients.shuffle(&mut random);
        let count = clients.len() as f64;
        let moments = clients.into_iter().enumerate().map(|(place, conn)| {
            let part = (place as f64 + random.random::<f64>()) / count;
            (now + over.mul_f64(part), conn)
        });
        let mut clients: Vec<(Instant, Conn)> = moments.collect();
        clients.reverse();
        Drain { clients, ends_at: now + over, random }
    }

    /// Takes the next client that is due, and returns it with a random number.
    pub fn next(&mut self, now: Instant) -> Option<(Conn, u32)> {
        let (_, conn) = self.clients.pop_if(|(at, _)| *at <= now)?;
        Some((conn, self.random.random()))
    }

    /// The clients that are due, in their order.
    #[cfg(feature = "simulator")]
    pub fn due_clients(&self, now: Instant) -> impl Iterator<Item = Conn> {
        let due = self.clients.iter().rev().take_while(move |(at, _)| *at <= now);
        due.map(|(_, conn)| *conn)
    }

    /// The next moment at which something is to do.
    pub fn due(&self) -> Instant {
        self.clients.last().map_or(self.ends_at, |(at, _)| *at)
    }

    /// Whether its time is over.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.ends_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: Duration = Duration::from_secs(20);

    /// The clients of a drain over 20 s in their order, each with its moment.
    fn drained(count: usize, seed: u64) -> Vec<(Duration, Conn)> {
        let (start, clients) = (Instant::now(), (0..count).map(|index| Conn::new(index, 1)));
        let mut drain = Drain::new(clients.collect(), start, OVER, seed);
        let mut all = Vec::new();
        while drain.due() < start + OVER {
            let at = drain.due();
            assert!(!drain.is_over(at) && drain.next(at - Duration::from_nanos(1)).is_none());
            let (conn, _) = drain.next(at).expect("it is due");
            all.push((at - start, conn));
        }
        assert!(drain.next(start + 2 * OVER).is_none() && drain.is_over(drain.due()));
        all
    }

    #[test]
    fn every_second_has_the_same_number_of_clients() {
        let all = drained(5000, 7);
        for second in 0..20 {
            let here = all.iter().filter(|(at, _)| at.as_secs() == second).count();
            assert!((249..=251).contains(&here), "{here} in second {second}");
        }
        let mut conns: Vec<Conn> = all.iter().map(|(_, conn)| *conn).collect();
        assert!(!conns.is_sorted(), "not in the order of their arrival");
        conns.sort();
        conns.dedup();
        assert_eq!(conns.len(), 5000, "each of them once");
    }

    #[test]
    fn the_order_depends_on_the_seed_alone() {
        let order = |seed| drained(50, seed).into_iter().map(|(_, c)| c).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn a_core_without_clients_has_nothing_to_do_until_the_end() {
        assert!(drained(0, 1).is_empty());
        assert_eq!(drained(1, 1).len(), 1);
    }
}
