//! What the load threads share: the phase that they are in, and what each says of itself. A thread
//! looks at the phase once per turn of its loop; nothing here is touched per request.

use crate::clock::{self, Nanos};
use regatta_record::{Exchange, FirstWrong, TlsSpoken};
use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::*},
};

/// What the load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// The threads are coming up.
    Starting,
    /// Opening connections; each gets one request.
    Connecting,
    /// Under load, nothing is recorded yet.
    WarmingUp,
    /// Under load, replies are recorded.
    Measuring,
    /// Nothing is sent any more; replies that are owed are awaited and checked.
    Draining,
    /// Over.
    Ended,
}

impl Phase {
    const ALL: [Phase; 6] = [
        Phase::Starting,
        Phase::Connecting,
        Phase::WarmingUp,
        Phase::Measuring,
        Phase::Draining,
        Phase::Ended,
    ];
}

/// What one thread says of itself, once per turn. On its own cache lines.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Gauge {
    /// Replies so far, right or wrong.
    pub replies: AtomicU64,
    /// Requests settled so far: answered or lost.
    pub settled: AtomicU64,
    /// Requests that were written and are not settled.
    pub awaited: AtomicU64,
    /// Failed attempts to connect so far.
    pub refused: AtomicU64,
    /// Connections so far that the server closed after their first reply, before the load began.
    pub dropped: AtomicU64,
    /// Connections that wait for nothing but the server's close.
    pub owed_ends: AtomicU64,
    /// Errors of all kinds so far.
    pub errors: AtomicU64,
    /// Connections whose first reply came and that still stand.
    pub open: AtomicUsize,
    /// One more than the phase that the thread has entered; the rest was said after that.
    pub entered: AtomicU8,
}

/// Sums over all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub replies: u64,
    pub settled: u64,
    pub awaited: u64,
    pub refused: u64,
    pub dropped: u64,
    pub owed_ends: u64,
    pub errors: u64,
    pub open: usize,
    /// Whether every thread has entered the current phase.
    pub together: bool,
}

/// Shared between the load threads and the caller's.
pub(crate) struct Shared {
    phase: AtomicU8,
    /// When the load began: the first phase after all threads had come up.
    began_at: AtomicU64,
    opened_at: AtomicU64,
    /// Set where a thread cannot go on or need not: the run ends.
    over: AtomicBool,
    first_wrong: Mutex<Option<FirstWrong>>,
    trouble: Mutex<Option<String>>,
    no_tls: Mutex<Option<rustls::Error>>,
    spoken: OnceLock<TlsSpoken>,
    /// Connections of a burst whose first reply came.
    opened: AtomicUsize,
    /// Servers had long enough to close connections whose last request told them to.
    closes_overdue: AtomicBool,
    /// The load ends before it has waited for what the server owes.
    cut_short: AtomicBool,
    /// Connections that wait for their first reply.
    opening: AtomicUsize,
    /// Most of these at a time.
    most_opening: usize,
    /// One per thread; where processes are led, one per process.
    pub gauges: Vec<Gauge>,
}

impl Shared {
    /// Most connections that wait for their first reply at a time, over all processes: fewer than
    /// the shortest accept queues that are met in practice (100 and 128).
    const MOST_OPENING: usize = 64;

    /// Between `threads` threads of one of `processes` processes, and whoever leads them.
    pub fn new(threads: usize, processes: usize) -> Self {
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
            most_opening: (Self::MOST_OPENING / processes).max(1),
            gauges: (0..threads).map(|_| Gauge::default()).collect(),
        }
    }

    #[inline]
    pub fn phase(&self) -> Phase {
        Phase::ALL[self.phase.load(Acquire) as usize]
    }

    /// All threads enter this phase with their next turn.
    pub fn set_phase(&self, phase: Phase) {
        // Once it began, it did.
        let _ = self.began_at.compare_exchange(0, clock::now(), Relaxed, Relaxed);
        self.phase.store(phase as u8, Release);
    }

    /// The measured window begins at this moment.
    pub fn open_window(&self, at: Nanos) {
        self.opened_at.store(at, Release);
        self.set_phase(Phase::Measuring);
    }

    /// When the measured window began.
    pub fn window_opened_at(&self) -> Nanos {
        self.opened_at.load(Acquire)
    }

    /// Ends the run early.
    pub fn end_early(&self) {
        self.over.store(true, Release);
    }

    /// Whether the run is to end early.
    #[inline]
    pub fn ends_early(&self) -> bool {
        self.over.load(Acquire)
    }

    /// A wrong reply came: the first is kept, and the run ends.
    pub fn disqualify(&self, exchange: Exchange) {
        self.saw_wrong(exchange);
        self.end_early();
    }

    /// A wrong reply came that is tolerated: the first is kept.
    pub fn saw_wrong(&self, exchange: Exchange) {
        let after_ns = clock::now().saturating_sub(self.began_at.load(Relaxed));
        self.first_wrong.lock().unwrap().get_or_insert(FirstWrong { after_ns, exchange });
    }

    /// The first wrong exchange, where there was one.
    pub fn first_wrong(&self) -> Option<FirstWrong> {
        self.first_wrong.lock().unwrap().clone()
    }

    /// Remembers why a connection could not be opened, or not be kept open.
    pub fn troubled(&self, cause: &str) {
        *self.trouble.lock().unwrap() = Some(cause.to_owned());
    }

    /// The last cause of that.
    pub fn last_trouble(&self) -> String {
        self.trouble().unwrap_or_else(|| "none was seen".into())
    }

    /// The same, where there was any.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap().clone()
    }

    /// TLS cannot be had with this server: the run ends.
    pub fn end_without_tls(&self, error: &rustls::Error) {
        self.no_tls.lock().unwrap().get_or_insert_with(|| error.clone());
        self.end_early();
    }

    /// Why there is no TLS with this server, if that ended the run.
    pub fn no_tls(&self) -> Option<rustls::Error> {
        self.no_tls.lock().unwrap().clone()
    }

    /// TLS came to stand, for the first time or again.
    pub fn spoke(&self, how: impl FnOnce() -> TlsSpoken) {
        self.spoken.get_or_init(how);
    }

    /// How TLS was spoken, if it was.
    pub fn spoken(&self) -> Option<TlsSpoken> {
        self.spoken.get().cloned()
    }

    /// The first reply on a connection of a burst came.
    pub fn one_opened(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    /// On how many connections of a burst it has come; none of these is opened again.
    pub fn opened(&self) -> usize {
        self.opened.load(Relaxed)
    }

    /// The first reply has come on so many connections of a burst, over all processes.
    pub fn set_opened(&self, connections: usize) {
        self.opened.store(connections, Relaxed);
    }

    /// A server that was told to close a connection has had long enough for it.
    pub fn closes_overdue(&self) {
        self.closes_overdue.store(true, Relaxed);
    }

    /// Whether it has.
    pub fn closes_are_overdue(&self) -> bool {
        self.closes_overdue.load(Relaxed)
    }

    /// The load ends before it has waited for what the server owes: it was stopped, or the server died.
    pub fn cut_short(&self) {
        self.cut_short.store(true, Relaxed);
    }

    /// Whether it does.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short.load(Relaxed)
    }

    /// Asks to open a connection; to be given back by [`Shared::opening_done`].
    pub fn may_open(&self) -> bool {
        let one_more = |n| (n < self.most_opening).then_some(n + 1);
        self.opening.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// A connection is opened for a request that is to be sent now, however many are being opened;
    /// to be given back likewise.
    pub fn opens(&self) {
        self.opening.fetch_add(1, Relaxed);
    }

    /// A connection got its first reply, or failed.
    pub fn opening_done(&self) {
        self.opening.fetch_sub(1, Relaxed);
    }

    /// So many load processes have connections that wait for their first reply.
    pub fn set_opening(&self, processes: usize) {
        self.opening.store(processes, Relaxed);
    }

    /// Whether connections wait for their first reply.
    pub fn is_opening(&self) -> bool {
        self.opening.load(Relaxed) > 0
    }

    /// What all threads say.
    pub fn sums(&self) -> Sums {
        let entered = self.phase() as u8 + 1;
        let together = self.gauges.iter().all(|gauge| gauge.entered.load(Acquire) == entered);
        let sum = |field: fn(&Gauge) -> &AtomicU64| {
            self.gauges.iter().map(|gauge| field(gauge).load(Relaxed)).sum()
        };
        Sums {
            replies: sum(|gauge| &gauge.replies),
            settled: sum(|gauge| &gauge.settled),
            awaited: sum(|gauge| &gauge.awaited),
            refused: sum(|gauge| &gauge.refused),
            dropped: sum(|gauge| &gauge.dropped),
            owed_ends: sum(|gauge| &gauge.owed_ends),
            errors: sum(|gauge| &gauge.errors),
            open: self.gauges.iter().map(|gauge| gauge.open.load(Relaxed)).sum(),
            together,
        }
    }
}
