//! Counts the operations that servers send unasked, of one load thread. A dialect without such
//! operations has none of this: the worker hands it a listener that does nothing.

use crate::{Plan, clock::Nanos, histogram::new_histogram, sends::Sends};
use regatta_record::{Operation, OperationCounted};
use regatta_script::Heard;

/// What is counted of them.
pub(crate) struct Operations {
    counted: Vec<OperationCounted>,
    /// Inside the measured window.
    is_open: bool,
    /// Those whose latencies count.
    sends: Sends,
}

impl Operations {
    /// `kinds` are all kinds, requests first: these are counted elsewhere.
    pub fn new(kinds: &[Operation], plan: &Plan) -> Self {
        let further = kinds.iter().skip(1).cloned();
        Operations {
            counted: further.map(|kind| OperationCounted::nothing(kind, new_histogram())).collect(),
            is_open: false,
            sends: Sends::of(plan.until),
        }
    }

    /// The window began at this moment, maybe a little ago.
    pub fn window_opens(&mut self, at: Nanos) {
        self.is_open = true;
        self.sends.open(at);
    }

    /// The window is over. What was due after this moment never was.
    pub fn window_closes(&mut self) {
        self.is_open = false;
        self.sends.close();
    }

    /// Who counts what came at `now`.
    #[inline]
    pub fn listen(&mut self, now: Nanos) -> Listener<'_> {
        Listener { operations: self, now }
    }

    /// What was counted, of each kind.
    pub fn into_counted(self) -> Vec<OperationCounted> {
        self.counted
    }
}

/// Counts what comes at one moment.
pub(crate) struct Listener<'o> {
    operations: &'o mut Operations,
    now: Nanos,
}

impl Heard for Listener<'_> {
    #[inline]
    fn heard(&mut self, kind: usize, sent_at: Nanos) {
        let Operations { counted, is_open, sends, .. } = &mut *self.operations;
        let counted = &mut counted[kind - 1];
        counted.whole_run += 1;
        counted.count += u64::from(*is_open);
        if sends.contain(sent_at) {
            let took = self.now.saturating_sub(sent_at).max(1);
            counted.histogram.saturating_record(took);
        }
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
        let sends = Sends::of(Until::Elapsed(Duration::from_nanos(length)));
        Operations { counted, is_open: false, sends }
    }

    /// Of each kind: inside the window, in the whole run, latencies.
    fn counts(operations: Operations) -> Vec<(u64, u64, u64)> {
        let all = operations.into_counted().into_iter();
        all.map(|one| (one.count, one.whole_run, one.histogram.len())).collect()
    }

    #[test]
    fn a_latency_belongs_to_the_moment_of_its_send() {
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
        // It came after the window, and was due inside it.
        operations.listen(opened + 300 * MS).heard(1, opened + 50 * MS);
        let latencies = &operations.counted[0].histogram;
        assert_eq!((latencies.min(), latencies.max() / MS), (1, 250), "0 ns is told as 1");
        assert_eq!(counts(operations), [(4, 6, 3), (0, 0, 0)]);
    }

    #[test]
    fn an_early_end_ends_the_window_of_the_sends_too() {
        let mut operations = operations(1_000 * SECOND);
        let opened = clock::now();
        operations.window_opens(opened);
        operations.window_closes();
        operations.listen(opened + SECOND).heard(1, opened);
        operations.listen(opened + 600 * SECOND).heard(1, opened + 500 * SECOND);
        assert_eq!(counts(operations), [(0, 2, 1), (0, 0, 0)]);
    }
}
