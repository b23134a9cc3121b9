//! State that the load threads share: the current phase, and a gauge per thread. A thread checks the
//! phase once per turn of its loop. Nothing here is accessed per request, except when the request opens
//! a connection or is answered wrongly.

use crate::{
    clock::{self, Nanos},
    counts::seconds::Handed,
    running::orders::{Order, SliceBarrier},
    sockets::waker::Waker,
};
use regatta_record::{Exchange, FirstWrong, TlsSpoken};
use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::*},
};

/// Phase of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// The threads are starting.
    Starting,
    /// Connections are being opened; each sends one request.
    Connecting,
    /// The server is under load; rates and latencies are not recorded yet.
    WarmingUp,
    /// The server is under load; replies are recorded.
    Measuring,
    /// Sending has stopped; pending replies are awaited and checked.
    Draining,
    /// A lane between two slices: nothing is sent, awaited or read.
    Resting,
    /// Over.
    Ended,
}

impl Phase {
    const ALL: [Phase; 7] = [
        Phase::Starting,
        Phase::Connecting,
        Phase::WarmingUp,
        Phase::Measuring,
        Phase::Draining,
        Phase::Resting,
        Phase::Ended,
    ];
}

/// Counters that one thread publishes once per turn. Aligned to avoid false sharing.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Gauge {
    /// Replies so far, right or wrong.
    pub replies: AtomicU64,
    /// Of those: on active connections, without the first replies of idle ones and of members that join. Only these
    /// count in a window.
    pub active_replies: AtomicU64,
    /// Requests settled so far: answered, rightly or wrongly, or lost.
    pub settled: AtomicU64,
    /// Requests that were written and are not settled. After the window it also counts, at least once,
    /// whatever else the thread still waits for: queued requests, pushed messages, answers to Close
    /// frames.
    pub awaited: AtomicU64,
    /// Connections lost before their first reply so far, other than by a timeout.
    pub refused: AtomicU64,
    /// Connections lost after their first reply so far, before the load began.
    pub dropped: AtomicU64,
    /// After the window: connections that wait only for the server to close them.
    pub owed_ends: AtomicU64,
    /// Errors of all kinds so far.
    pub errors: AtomicU64,
    /// Connections that got their first reply and are still open, or whose close was announced before
    /// the load began. Excludes those of members that join and leave.
    pub open: AtomicUsize,
    /// Seconds of the window that are over.
    pub handed: Handed,
    /// One more than the phase that the thread has entered. The other counters were stored in that
    /// phase.
    pub entered: AtomicU8,
    /// In a lane: wakes the thread from its poller.
    pub waker: OnceLock<Waker>,
}

/// Sums over all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub replies: u64,
    pub active_replies: u64,
    pub settled: u64,
    pub awaited: u64,
    pub refused: u64,
    pub dropped: u64,
    pub owed_ends: u64,
    pub errors: u64,
    pub open: usize,
    /// Whether every thread has entered the current phase.
    pub all_entered: bool,
}

/// State shared between the load threads and the calling thread.
pub(crate) struct Shared {
    phase: AtomicU8,
    /// When the load began: the first phase after all threads had started.
    began_at: AtomicU64,
    opened_at: AtomicU64,
    /// The run ends early. Set by a wrong reply or a TLS failure, and when a thread fails or finishes.
    over: AtomicBool,
    first_wrong: Mutex<Option<FirstWrong>>,
    trouble: Mutex<Option<String>>,
    no_tls: Mutex<Option<rustls::Error>>,
    spoken: OnceLock<TlsSpoken>,
    /// Connections of a burst that got their first reply.
    opened: AtomicUsize,
    /// The server has had enough time to close connections after a request with e.g. `Connection:
    /// close`.
    closes_overdue: AtomicBool,
    /// The load ends without waiting for pending replies.
    cut_short: AtomicBool,
    /// Connections that wait for their first reply (not counted with a connection per request). In the
    /// leader of load processes: the number of processes that have such connections.
    opening: AtomicUsize,
    /// In the leader of load processes on several machines: members are still owed broadcasts of other
    /// machines.
    owes_across: AtomicBool,
    /// Limit of `opening` for [`Shared::try_reserve_opening`].
    most_opening: usize,
    /// One per thread; in the leader of load processes, one per process.
    pub gauges: Vec<Gauge>,
    /// In a lane: where the threads rest between two slices.
    pub rest: Option<SliceBarrier>,
}

impl Shared {
    /// For `threads` threads of a load process, which has at most `most_opening` connections that wait for
    /// their first reply. The leader of load processes passes their number as `threads`, and opens no connection.
    pub fn new(threads: usize, most_opening: usize) -> Self {
        Shared {
            phase: AtomicU8::new(Phase::Starting as u8),
            began_at: AtomicU64::new(0),
            opened_at: AtomicU64::new(0),
            over: AtomicBool::new(false),
            first_wrong: Mutex::new(None),
            trouble: Mutex::new(None),
            no_tls: Mutex::new(None),
            spoken: OnceLock::new(),
            opened: AtomicUsize::new(0),
            closes_overdue: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
            opening: AtomicUsize::new(0),
            owes_across: AtomicBool::new(false),
            most_opening,
            gauges: (0..threads).map(|_| Gauge::default()).collect(),
            rest: None,
        }
    }

    /// For the `threads` threads of a lane.
    pub fn of_lane(threads: usize, most_opening: usize) -> Self {
        Shared { rest: Some(SliceBarrier::new(threads)), ..Self::new(threads, most_opening) }
    }

    #[inline]
    pub fn phase(&self) -> Phase {
        Phase::ALL[self.phase.load(Acquire) as usize]
    }

    /// Makes all threads enter this phase in their next turn.
    pub fn set_phase(&self, phase: Phase) {
        // Only the first call sets the time.
        let _ = self.began_at.compare_exchange(0, clock::now(), Relaxed, Relaxed);
        self.phase.store(phase as u8, Release);
    }

    /// In a lane: makes all threads enter this phase at once.
    pub fn hasten(&self, phase: Phase) {
        self.set_phase(phase);
        (0..self.gauges.len()).for_each(|thread| self.wake(thread));
    }

    /// In a lane: wakes a thread from its poller.
    pub fn wake(&self, thread: usize) {
        if let Some(waker) = self.gauges.get(thread).and_then(|gauge| gauge.waker.get()) {
            waker.wake();
        }
    }

    /// Ends the load for all threads, also for those that rest.
    pub fn end_all(&self) {
        self.end_early();
        self.set_phase(Phase::Ended);
        if let Some(rest) = &self.rest {
            rest.give(Order::End, || ());
        }
    }

    /// Opens the measured window at this moment.
    pub fn open_window(&self, at: Nanos) {
        self.opened_at.store(at, Release);
        self.set_phase(Phase::Measuring);
    }

    /// When the measured window began; 0 before that.
    pub fn window_opened_at(&self) -> Nanos {
        self.opened_at.load(Acquire)
    }

    /// Ends the run early.
    pub fn end_early(&self) {
        self.over.store(true, Release);
    }

    /// Whether the run must end early.
    #[inline]
    pub fn ends_early(&self) -> bool {
        self.over.load(Acquire)
    }

    /// Keeps the first wrong reply, and ends the run.
    pub fn disqualify(&self, exchange: Exchange) {
        self.saw_wrong(exchange);
        self.end_early();
    }

    /// Keeps the first wrong reply. For one that is tolerated.
    pub fn saw_wrong(&self, exchange: Exchange) {
        let after_ns = clock::now().saturating_sub(self.began_at.load(Relaxed));
        self.first_wrong.lock().unwrap().get_or_insert(FirstWrong { after_ns, exchange });
    }

    /// Returns the first wrong exchange, if any.
    pub fn first_wrong(&self) -> Option<FirstWrong> {
        self.first_wrong.lock().unwrap().clone()
    }

    /// Records why a connection could not be opened or kept open.
    pub fn troubled(&self, cause: &str) {
        *self.trouble.lock().unwrap() = Some(cause.to_owned());
    }

    /// Returns the last such cause, or "none".
    pub fn last_trouble(&self) -> String {
        self.trouble().unwrap_or_else(|| "none".into())
    }

    /// Returns the last such cause, if any.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap().clone()
    }

    /// Ends the run because no TLS session can be established with this server.
    pub fn end_without_tls(&self, error: &rustls::Error) {
        self.no_tls.lock().unwrap().get_or_insert_with(|| error.clone());
        self.end_early();
    }

    /// The TLS error that ended the run, if one did.
    pub fn no_tls(&self) -> Option<rustls::Error> {
        self.no_tls.lock().unwrap().clone()
    }

    /// Records a completed TLS handshake. Only the first one is kept.
    pub fn spoke(&self, how: impl FnOnce() -> TlsSpoken) {
        self.spoken.get_or_init(how);
    }

    /// The parameters of the first TLS session, if any.
    pub fn spoken(&self) -> Option<TlsSpoken> {
        self.spoken.get().cloned()
    }

    /// Counts a connection of a burst that got its first reply.
    pub fn one_opened(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    /// Number of connections of a burst that got their first reply. They count once each.
    pub fn opened(&self) -> usize {
        self.opened.load(Relaxed)
    }

    /// Sets [`Shared::opened`] to the number of connections over all processes.
    pub fn set_opened(&self, connections: usize) {
        self.opened.store(connections, Relaxed);
    }

    /// Records that the server has had enough time to close connections when asked to.
    pub fn set_closes_overdue(&self) {
        self.closes_overdue.store(true, Relaxed);
    }

    /// Whether [`Shared::set_closes_overdue`] was called.
    pub fn closes_are_overdue(&self) -> bool {
        self.closes_overdue.load(Relaxed)
    }

    /// Records that the load ends without waiting for pending replies: it was stopped, the server died,
    /// or [`Shared::end_early`] was called.
    pub fn cut_short(&self) {
        self.cut_short.store(true, Relaxed);
    }

    /// Whether [`Shared::cut_short`] was called.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short.load(Relaxed)
    }

    /// Reserves a slot to open a connection; false if none is free. [`Shared::opening_done`] releases
    /// it.
    pub fn try_reserve_opening(&self) -> bool {
        let one_more = |n| (n < self.most_opening).then_some(n + 1);
        self.opening.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Counts a connection that is opened for a request that is due now, without a limit.
    /// [`Shared::opening_done`] must follow.
    pub fn opens(&self) {
        self.opening.fetch_add(1, Relaxed);
    }

    /// Records that a connection got its first reply, or failed.
    pub fn opening_done(&self) {
        self.opening.fetch_sub(1, Relaxed);
    }

    /// Sets whether members are still owed broadcasts of other machines.
    pub fn set_owes_across(&self, owes: bool) {
        self.owes_across.store(owes, Relaxed);
    }

    /// Whether [`Shared::set_owes_across`] was set.
    pub fn owes_across(&self) -> bool {
        self.owes_across.load(Relaxed)
    }

    /// Sets the number of load processes that have connections waiting for their first reply.
    pub fn set_opening(&self, processes: usize) {
        self.opening.store(processes, Relaxed);
    }

    /// Whether any connection waits for its first reply.
    pub fn is_opening(&self) -> bool {
        self.opening.load(Relaxed) > 0
    }

    /// Adds up the gauges of all threads.
    pub fn sums(&self) -> Sums {
        let entered = self.phase() as u8 + 1;
        let all_entered = self.gauges.iter().all(|gauge| gauge.entered.load(Acquire) == entered);
        let sum = |field: fn(&Gauge) -> &AtomicU64| {
            self.gauges.iter().map(|gauge| field(gauge).load(Relaxed)).sum()
        };
        Sums {
            replies: sum(|gauge| &gauge.replies),
            active_replies: sum(|gauge| &gauge.active_replies),
            settled: sum(|gauge| &gauge.settled),
            awaited: sum(|gauge| &gauge.awaited),
            refused: sum(|gauge| &gauge.refused),
            dropped: sum(|gauge| &gauge.dropped),
            owed_ends: sum(|gauge| &gauge.owed_ends),
            errors: sum(|gauge| &gauge.errors),
            open: self.gauges.iter().map(|gauge| gauge.open.load(Relaxed)).sum(),
            all_entered,
        }
    }
}
