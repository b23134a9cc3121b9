//! Counts the operations beside requests, for one load thread: those that servers push, and the messages of
//! streams. A dialect without pushed operations skips the former: the worker passes it a listener that does
//! nothing.

use crate::{Until, clock::Nanos, histogram::new_histogram, open_loop::sends::WindowBounds};
use regatta_record::{AcrossCounted, Exchange, Machines, Operation, OperationCounted};
use regatta_script::{Heard, Streamed};

/// Counts of the operations beside requests.
pub(crate) struct Operations {
    counted: Vec<OperationCounted>,
    /// Latencies of operations that other machines caused, if there are some.
    across: Option<Box<Across>>,
    /// Whether the measured window is open.
    is_open: bool,
    /// The sends whose latencies count.
    sends: WindowBounds,
    /// When the last operation arrived.
    last: Nanos,
    /// The wrong operations that were not taken yet. `None`: the first one ends the run.
    wrong: Option<Wrong>,
}

/// Wrong operations, which are tolerated.
#[derive(Default)]
pub(crate) struct Wrong {
    pub count: u64,
    pub first: Option<Box<Exchange>>,
}

impl Operations {
    /// `kinds` are all kinds of operations. Requests come first and are counted elsewhere. `until` is the
    /// end of the window. `machines` are those of the load, if its connections must know of each other.
    /// `tolerates`: wrong operations are counted.
    pub fn new(
        kinds: &[Operation],
        until: Until,
        machines: Option<&Machines>,
        tolerates: bool,
    ) -> Self {
        let further = kinds.iter().skip(1).cloned();
        let across = |machines: &Machines| {
            let counted = AcrossCounted::nothing(machines.count(), &new_histogram());
            Box::new(Across { counted, shift_ns: machines.shift_ns as i64 })
        };
        Operations {
            across: machines.map(across),
            counted: further.map(|kind| OperationCounted::nothing(kind, new_histogram())).collect(),
            is_open: false,
            sends: WindowBounds::of(until),
            last: 0,
            wrong: tolerates.then(Wrong::default),
        }
    }

    /// Takes the wrong operations since the last call; `None`: there are none.
    #[inline]
    pub fn take_wrong(&mut self) -> Option<Wrong> {
        self.wrong.as_mut().filter(|wrong| wrong.count > 0).map(std::mem::take)
    }

    /// When the last operation arrived; 0 if none did.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// The window opened at this moment, possibly a little earlier than now.
    pub fn window_opens(&mut self, at: Nanos) {
        self.is_open = true;
        self.sends.open(at);
    }

    /// The window is over. Sends that were due after this moment do not count.
    pub fn window_closes(&mut self) {
        self.is_open = false;
        self.sends.close();
    }

    /// Returns a listener that counts operations received at `now`.
    #[inline]
    pub fn listen(&mut self, now: Nanos) -> Listener<'_> {
        Listener { operations: self, now }
    }

    /// Counts the messages of a right reply ([`Streamed::OPERATIONS`]). `from` is when its request was sent,
    /// or was due; `None` if that does not count. `is_inside`: the reply was complete inside the window.
    #[inline]
    pub fn streamed(&mut self, streamed: Streamed, from: Option<Nanos>, is_inside: bool) {
        let Streamed { messages, first_at, longest_gap } = streamed;
        let [all, first, gap] = &mut self.counted[..] else { return };
        let from = from.filter(|from| self.sends.contain(*from));
        let latency = from.zip(first_at).map(|(from, at)| at.saturating_sub(from));
        for (counted, several, latency) in [
            (all, messages, None),
            (first, u64::from(first_at.is_some()), latency),
            (gap, u64::from(longest_gap.is_some()), longest_gap.filter(|_| from.is_some())),
        ] {
            counted.whole_run += several;
            counted.count += if is_inside { several } else { 0 };
            if let Some(latency) = latency {
                counted.histogram.saturating_record(latency.max(1));
            }
        }
    }

    /// Returns the counts of each kind, and the latencies between machines.
    pub fn into_counted(self) -> (Vec<OperationCounted>, Option<Box<AcrossCounted>>) {
        (self.counted, self.across.map(|across| Box::new(across.counted)))
    }
}

/// Latencies between machines.
struct Across {
    counted: AcrossCounted,
    /// What is added to each, in nanoseconds.
    shift_ns: i64,
}

/// Counts the operations received at one moment.
pub(crate) struct Listener<'o> {
    operations: &'o mut Operations,
    now: Nanos,
}

impl Heard for Listener<'_> {
    #[inline]
    fn heard(&mut self, kind: usize, sent_at: Nanos) {
        let Operations { counted, is_open, sends, last, .. } = &mut *self.operations;
        *last = self.now;
        let counted = &mut counted[kind - 1];
        counted.whole_run += 1;
        counted.count += u64::from(*is_open);
        if sends.contain(sent_at) {
            let took = self.now.saturating_sub(sent_at).max(1);
            counted.histogram.saturating_record(took);
        }
    }

    #[inline]
    fn heard_from(&mut self, kind: usize, machine: u32, sent_at: i64) {
        let Operations { counted, is_open, sends, last, across, .. } = &mut *self.operations;
        *last = self.now;
        let counted = &mut counted[kind - 1];
        counted.whole_run += 1;
        counted.count += u64::from(*is_open);
        if let Some(across) = across
            && sends.contain(u64::try_from(sent_at).unwrap_or(0))
        {
            let took = (self.now as i64).saturating_sub(sent_at);
            let shifted = took.saturating_add(across.shift_ns);
            across.counted.latencies[machine as usize].record(shifted);
        }
    }

    #[cold]
    fn missing(&mut self, kind: usize, sent_at: Nanos, count: u64) {
        let Operations { counted, sends, .. } = &mut *self.operations;
        if sends.contain(sent_at) {
            counted[kind - 1].missing += count;
        }
    }

    #[cold]
    fn wrong(&mut self, exchange: Box<Exchange>, count: u64) -> Result<(), Box<Exchange>> {
        let Some(wrong) = &mut self.operations.wrong else { return Err(exchange) };
        wrong.count += count;
        wrong.first.get_or_insert(exchange);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Until,
        clock::{self, MS, SECOND},
    };
    use std::time::Duration;

    const KINDS: &[Operation] = &[
        Operation::REQUESTS,
        Operation::new("deliveries", "delivery", "deliveries"),
        Operation::new("results", "result", "results"),
    ];

    fn operations(length: Nanos) -> Operations {
        let nothing = |kind: &Operation| OperationCounted::nothing(kind.clone(), new_histogram());
        let counted = KINDS[1..].iter().map(nothing).collect();
        let sends = WindowBounds::of(Until::Elapsed(Duration::from_nanos(length)));
        Operations { counted, across: None, is_open: false, sends, last: 0, wrong: None }
    }

    /// Per kind: the count inside the window, the count of the whole run, and the number of latencies.
    fn counts(operations: Operations) -> Vec<(u64, u64, u64)> {
        let all = operations.into_counted().0.into_iter();
        all.map(|one| (one.count, one.whole_run, one.histogram.len())).collect()
    }

    #[test]
    fn latencies_count_if_the_send_was_inside_the_window() {
        let mut operations = operations(100 * MS);
        let opened = clock::now();
        operations.listen(opened).heard(1, opened - MS);
        operations.window_opens(opened);
        // Its send was due before the window.
        operations.listen(opened + MS).heard(1, opened - 1);
        operations.listen(opened).heard(1, opened);
        operations.listen(opened + 100 * MS).heard(1, opened + 100 * MS - 1);
        operations.listen(opened + 101 * MS).heard(1, opened + 100 * MS);
        while clock::now() < opened + 100 * MS {}
        operations.window_closes();
        // It was received after the window, but was due inside it.
        operations.listen(opened + 300 * MS).heard(1, opened + 50 * MS);
        // What is missing counts if its send was inside, whenever that is known.
        for sent_at in [opened - MS, opened, opened + 99 * MS, opened + 100 * MS] {
            operations.listen(opened + 300 * MS).missing(1, sent_at, 3);
        }
        let missing: Vec<u64> = operations.counted.iter().map(|one| one.missing).collect();
        assert_eq!(missing, [6, 0]);
        let latencies = &operations.counted[0].histogram;
        assert_eq!((latencies.min(), latencies.max() / MS), (1, 250), "0 ns is recorded as 1");
        assert_eq!(counts(operations), [(4, 6, 3), (0, 0, 0)]);
    }

    #[test]
    fn an_early_end_also_ends_the_window_for_sends() {
        let mut operations = operations(1_000 * SECOND);
        let opened = clock::now();
        operations.window_opens(opened);
        operations.window_closes();
        operations.listen(opened + SECOND).heard(1, opened);
        operations.listen(opened + 600 * SECOND).heard(1, opened + 500 * SECOND);
        assert_eq!(counts(operations), [(0, 2, 1), (0, 0, 0)]);
    }
}
