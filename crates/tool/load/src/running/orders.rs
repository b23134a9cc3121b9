//! Where the threads of a lane rest between slices, and get their orders: each blocks until the caller
//! gives the next one. Nothing here wakes up by itself.

use crate::{clock::Nanos, counts::tally::Count};
use hdrhistogram::Histogram;
use std::{
    mem,
    sync::{Condvar, Mutex, MutexGuard},
    time::Duration,
};

/// What a slice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceKind {
    /// It warms the server up: nothing of it is in the lane's total except its errors. With
    /// [`crate::Plan::withholds`], the last bytes of a few requests are held back for a while.
    WarmUp,
    /// It is measured: latencies and counts are added to the lane's total.
    Counted,
    /// It is not added to the total, except its errors.
    Uncounted,
}

/// A slice as it was ordered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    /// When it was ordered. The schedule of an open loop counts from here.
    pub begins: Nanos,
    pub length: Nanos,
    /// Seed of the arrivals of an open loop.
    pub seed: u64,
}

/// What the threads do next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Slice(Slice),
    /// The lane ends: final checks, or none if it is cut short.
    End,
}

/// The place of rest.
pub(crate) struct SliceBarrier {
    state: Mutex<State>,
    /// Wakes the load threads.
    ordered: Condvar,
    /// Wakes the caller.
    rested: Condvar,
}

struct State {
    threads: usize,
    /// The last order, and how many were given.
    order: Order,
    orders: u64,
    /// Threads that rest now.
    resting: usize,
    /// All threads have ended, or could not be started.
    is_over: bool,
    /// Counts that the threads handed over since the last order, with the numbers of the threads.
    counts: Vec<(usize, Count)>,
    /// Empty histograms for the threads. Their memory is in use already, so that recording in them does
    /// not have to wait for the kernel.
    spare: Vec<Histogram<u64>>,
}

impl SliceBarrier {
    /// For `threads` load threads, which have not started.
    pub fn new(threads: usize) -> Self {
        let state = State {
            threads,
            order: Order::End,
            orders: 0,
            resting: 0,
            is_over: false,
            counts: Vec::with_capacity(threads),
            spare: Vec::new(),
        };
        SliceBarrier { state: Mutex::new(state), ordered: Condvar::new(), rested: Condvar::new() }
    }

    /// Gives an empty histogram to the threads.
    pub fn keep(&self, empty: Histogram<u64>) {
        self.lock().spare.push(empty);
    }

    /// Takes an empty histogram, if there is one.
    pub fn spare(&self) -> Option<Histogram<u64>> {
        self.lock().spare.pop()
    }

    /// Hands over what this thread counted: it rests from now on. Returns the number of orders so far.
    pub fn hand_over(&self, thread: usize, count: Count) -> u64 {
        let mut state = self.lock();
        state.counts.push((thread, count));
        state.resting += 1;
        if state.resting == state.threads {
            self.rested.notify_one();
        }
        state.orders
    }

    /// Blocks until there is an order after the first `orders`.
    pub fn next_order(&self, orders: u64) -> Order {
        let mut state = self.lock();
        while state.orders == orders {
            state = self.ordered.wait(state).expect("no thread panics here");
        }
        state.order
    }

    /// The last order.
    pub fn order(&self) -> Order {
        self.lock().order
    }

    /// Gives an order to all threads. `announce` runs before they wake up. Returns false if they have
    /// ended.
    pub fn give(&self, order: Order, announce: impl FnOnce()) -> bool {
        let mut state = self.lock();
        if state.is_over {
            return false;
        }
        announce();
        state.order = order;
        state.orders += 1;
        state.resting = 0;
        drop(state);
        self.ordered.notify_all();
        true
    }

    /// Records that all threads have ended.
    pub fn ended(&self) {
        self.lock().is_over = true;
        self.rested.notify_one();
    }

    /// Blocks until all threads rest or have ended; calls `watch` now and then meanwhile. Returns the
    /// counts that they handed over, in the order of their numbers; `None` if they have ended.
    pub fn until_rested(&self, every: Duration, watch: impl Fn()) -> Option<Vec<Count>> {
        let mut state = self.lock();
        while state.resting < state.threads && !state.is_over {
            let waited = self.rested.wait_timeout(state, every);
            let timed_out;
            (state, timed_out) = waited.expect("no thread panics here");
            if timed_out.timed_out() {
                drop(state);
                watch();
                state = self.lock();
            }
        }
        let mut counts = mem::take(&mut state.counts);
        let ended = state.is_over;
        drop(state);
        counts.sort_unstable_by_key(|(thread, _)| *thread);
        (!ended).then(|| counts.into_iter().map(|(_, count)| count).collect())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics here")
    }
}
