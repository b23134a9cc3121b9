//! When the messages of a leader reach the agent's process (pure): loads begin at most once a second, because each
//! opens all of its connections.

use super::stream::{FULL, LONGEST};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Shortest time between the beginnings of two loads, also of two sessions.
const BETWEEN_LOADS: Duration = Duration::from_secs(1);
/// Most messages that wait, and most of their bytes: one of the longest length, and short ones behind it.
const MOST: usize = 1024;
const MOST_BYTES: usize = LONGEST + FULL;

/// When the last load of an agent began.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<Instant>);

impl Pace {
    /// How long the next load must wait.
    fn wait(&self, now: Instant) -> Duration {
        let next = self.0.map(|began| began + BETWEEN_LOADS);
        next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }
}

/// Messages that are permitted and wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Each message, and whether it begins a load. The oldest first.
    messages: VecDeque<(bool, Vec<u8>)>,
    bytes: usize,
}

impl Held {
    /// Takes a message.
    ///
    /// # Errors
    /// If so many wait that no leader needs them, as a clause.
    pub fn push(&mut self, begins_load: bool, message: Vec<u8>) -> Result<(), &'static str> {
        if self.messages.len() >= MOST || self.bytes + message.len() > MOST_BYTES {
            return Err("the leader sends messages faster than the agent may take them");
        }
        self.bytes += message.len();
        self.messages.push_back((begins_load, message));
        Ok(())
    }

    /// Returns the next message if it is due. After one that begins a load, the next such one must wait.
    pub fn pop(&mut self, pace: &mut Pace, now: Instant) -> Option<Vec<u8>> {
        let (begins_load, _) = self.messages.front()?;
        if *begins_load {
            if !pace.wait(now).is_zero() {
                return None;
            }
            pace.0 = Some(now);
        }
        let (_, message) = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// How long the next message must wait; `None` if there is none.
    pub fn wait(&self, pace: &Pace, now: Instant) -> Option<Duration> {
        let (begins_load, _) = self.messages.front()?;
        Some(if *begins_load { pace.wait(now) } else { Duration::ZERO })
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(held: &mut Held, pace: &mut Pace, now: Instant) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| held.pop(pace, now)).collect()
    }

    #[test]
    fn a_second_load_waits_and_what_follows_it_waits_with_it() {
        let (mut held, mut pace, now) = (Held::default(), Pace::default(), Instant::now());
        for (begins_load, message) in
            [(false, "lease"), (true, "load"), (true, "load"), (false, "order")]
        {
            held.push(begins_load, message.into()).unwrap();
        }
        assert_eq!(all(&mut held, &mut pace, now), [&b"lease"[..], b"load"]);
        assert_eq!(held.wait(&pace, now), Some(BETWEEN_LOADS));
        let early = now + Duration::from_millis(999);
        assert!(all(&mut held, &mut pace, early).is_empty() && !held.is_empty());
        assert_eq!(held.wait(&pace, early), Some(Duration::from_millis(1)));
        let later = now + BETWEEN_LOADS;
        assert_eq!(all(&mut held, &mut pace, later), [&b"load"[..], b"order"]);
        assert!(held.wait(&pace, later).is_none() && held.is_empty() && held.bytes == 0);
    }

    #[test]
    fn the_load_of_the_next_session_waits_too() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for (waits_ms, expected) in [(0, 1), (10, 0), (1_010, 1)] {
            let mut held = Held::default();
            held.push(true, b"load".to_vec()).unwrap();
            let at = now + Duration::from_millis(waits_ms);
            assert_eq!(all(&mut held, &mut pace, at).len(), expected, "after {waits_ms} ms");
        }
    }

    #[test]
    fn messages_that_wait_have_a_limit() {
        let mut held = Held::default();
        held.push(true, vec![0; LONGEST]).unwrap();
        held.push(false, vec![0; FULL]).unwrap();
        let error = held.push(false, vec![0]).unwrap_err();
        assert_eq!(error, "the leader sends messages faster than the agent may take them");
        let mut held = Held::default();
        assert_eq!((0..2_000).take_while(|_| held.push(false, vec![0]).is_ok()).count(), MOST);
    }
}
