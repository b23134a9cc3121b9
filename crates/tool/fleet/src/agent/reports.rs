//! The reports of the load processes of a load. Each process has a thread that reads them, and waits while too many are
//! on the way to the leader. Then the pipe of the process fills up, and the process waits.

use super::outbox::Outbox;
use std::{
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
    time::Duration,
};

/// Most reports that wait for the agent, and most messages that wait for the leader, before processes wait.
const MOST: usize = 64;
/// Interval between two looks whether that is still so.
const LOOKED_EVERY: Duration = Duration::from_millis(5);

/// The reports of a load.
#[derive(Default)]
pub(super) struct Reports {
    /// Whether all processes were started. Until then none of them waits, because the thread that starts them must
    /// not wait for one that waits for it.
    are_started: AtomicBool,
    /// Whether the processes are to end.
    are_ended: AtomicBool,
    /// Number of reports that wait for the agent.
    waiting: AtomicUsize,
}

impl Reports {
    /// All processes were started.
    pub fn started(&self) {
        self.are_started.store(true, SeqCst);
    }

    /// The processes are to end: nobody waits.
    pub fn end(&self) {
        self.are_ended.store(true, SeqCst);
    }

    /// Waits until there is room for a report, and takes it. Returns whether anybody is interested in it.
    pub fn enter(&self, outbox: &Outbox) -> bool {
        while self.are_started.load(SeqCst)
            && !self.are_ended.load(SeqCst)
            && (self.waiting.load(Relaxed) >= MOST || outbox.waiting() >= MOST)
        {
            thread::sleep(LOOKED_EVERY);
        }
        self.waiting.fetch_add(1, Relaxed);
        !self.are_ended.load(SeqCst)
    }

    /// The agent has taken a report.
    pub fn taken(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Answer, FromAgent};
    use regatta_testkit::deadline::until;
    use std::sync::Arc;

    /// Takes room for 200 reports, on a thread, and counts them.
    fn reporting(reports: &Arc<Reports>, outbox: &Outbox) -> Arc<AtomicUsize> {
        let entered = Arc::new(AtomicUsize::new(0));
        let (counted, reports, outbox) = (entered.clone(), reports.clone(), outbox.clone());
        thread::spawn(move || {
            while counted.load(SeqCst) < 200 && reports.enter(&outbox) {
                counted.fetch_add(1, SeqCst);
            }
        });
        entered
    }

    /// Whether this number is reached and stays.
    fn stays_at(entered: &AtomicUsize, expected: usize) {
        until("so many reports entered", || entered.load(SeqCst) == expected);
        thread::sleep(4 * LOOKED_EVERY);
        assert_eq!(entered.load(SeqCst), expected);
    }

    #[test]
    fn processes_wait_while_the_agent_does_not_take_their_reports() {
        let (reports, (outbox, _waiting)) = (Arc::new(Reports::default()), Outbox::new());
        reports.started();
        let entered = reporting(&reports, &outbox);
        stays_at(&entered, MOST);
        (0..10).for_each(|_| reports.taken());
        stays_at(&entered, MOST + 10);
        reports.end();
        until("the thread ends", || Arc::strong_count(&reports) == 1);
        assert_eq!(entered.load(SeqCst), MOST + 10);
    }

    #[test]
    fn processes_wait_while_the_leader_does_not_read() {
        let (reports, (outbox, waiting)) = (Arc::new(Reports::default()), Outbox::new());
        reports.started();
        let pulse = FromAgent { seq: 0, body: Answer::Pulse };
        (0..MOST).for_each(|_| outbox.send(pulse.clone()));
        let entered = reporting(&reports, &outbox);
        stays_at(&entered, 0);
        drop(outbox);
        thread::spawn(move || waiting.run(std::io::sink()));
        until("they go on", || entered.load(SeqCst) > 0);
        reports.end();
        until("the thread ends", || Arc::strong_count(&reports) == 1);
    }

    #[test]
    fn nobody_waits_while_the_processes_are_being_started() {
        let (reports, (outbox, _waiting)) = (Arc::new(Reports::default()), Outbox::new());
        let entered = reporting(&reports, &outbox);
        stays_at(&entered, 200);
    }
}
