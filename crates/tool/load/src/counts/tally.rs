//! The result of a load: the counts of each thread, and the merged result.

use crate::{
    OpenTally, Plan, Split, Until,
    clock::{self, MS, Nanos},
    counts::{
        operations::Operations,
        seconds::{self, Handed, SoFar, Ticking},
    },
    histogram::new_histogram,
    open_loop::{open_tally::OpenCount, sends::WindowBounds},
    run_delay::RunDelay,
};
use hdrhistogram::Histogram;
use regatta_record::{Counted, Exchange, Operation, Part, Verified};
use std::{
    mem,
    ops::{Deref, DerefMut},
};

/// The result of a load: the counts of all its threads, which it dereferences to, and what follows from them
/// and from the plan.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The counts, without those that have a field of their own here. With [`Until::Requests`] and
    /// [`Until::Done`] the window ends with the last reply. If it ends within a slice, because it ended
    /// with its last request or early, that slice is omitted; if a fixed duration is longer than a whole
    /// number of slices, the last slice includes the remainder.
    ///
    /// In a closed loop a latency is the time from the write (with a connection per request, from before the
    /// connect) to the reply, of requests written inside the window. In an open loop it is the time from the
    /// intended send to the reply, of requests due inside the window. The reply may come after the window.
    /// Requests that timed out inside the window are in no histogram: count them as slower than everything
    /// in it.
    pub counts: Counted,
    /// Number of processes that carried out the load.
    pub processes: usize,
    /// Number of load threads, over all processes.
    pub threads: usize,
    /// The first wrong exchange. The run ended there, unless errors are tolerated
    /// ([`Plan::tolerates`]).
    pub first_wrong: Option<Exchange>,
    /// Wall time of each instance of a burst in nanoseconds, from the start of the window (before its
    /// first connect) to its last reply; 0 if it got no reply; empty without a burst.
    pub instances_ns: Vec<u64>,
    /// With a rate: the outcomes of the scheduled requests, and the parts of their latency.
    pub open_loop: Option<OpenTally>,
    /// The result of each stage of the window that began ([`Plan::stages`]), with the plan of
    /// [`Plan::stage`]. Of the errors it has only the timeouts, and of the replies those to requests that
    /// were due in it.
    pub stages: Vec<Tally>,
    /// Duration of the warm-up in nanoseconds, until its condition was met ([`Plan::warm_up`]).
    pub warm_up_ns: u64,
    /// Replies in that time.
    pub warm_up_requests: u64,
    /// The caller stopped the run; the other fields hold the results until then.
    pub interrupted: bool,
    /// The result of the joint verification after the load, if its connections share keys and it was
    /// carried out; `None` with several processes.
    pub verified: Option<Verified>,
    /// The run ended because the server counts as dead: it refused connections for two seconds, or it
    /// answered nothing for longer than a reply and a connection may take.
    pub server_died: bool,
}

impl Deref for Tally {
    type Target = Counted;

    fn deref(&self) -> &Counted {
        &self.counts
    }
}

/// Counts of one load thread, and what they are counted with.
pub(crate) struct Count {
    /// What is only counted. [`Counted::reply_bytes`] is [`Count::received`] before the window while that is open.
    pub sum: Counted,
    pub operations: Operations,
    /// Bytes received so far, without the encryption of TLS.
    pub received: u64,
    /// In a lane: when this thread began to send, in this slice.
    pub began: Nanos,
    /// When the last reply inside the window came.
    pub last_reply: Nanos,
    /// The sends whose latencies count.
    pub sends: WindowBounds,
    pub open_loop: Option<OpenCount>,
    run_delay: RunDelay,
    /// When the last reply of each burst instance of this thread came; 0 for none.
    pub last_replies: Vec<Nanos>,
    slices: Slices,
    /// The current second, if the seconds are reported. [`Counted::histogram`] is that of the second then.
    ticking: Option<Box<Ticking>>,
}

impl Deref for Count {
    type Target = Counted;

    fn deref(&self) -> &Counted {
        &self.sum
    }
}

impl DerefMut for Count {
    fn deref_mut(&mut self) -> &mut Counted {
        &mut self.sum
    }
}

impl Count {
    /// For a thread of a plan. `kinds` are the kinds of operations, requests first.
    pub fn new(plan: &Plan, kinds: &[Operation]) -> Self {
        let ticking = plan.seconds.then(|| Box::new(Ticking::new()));
        let (machines, tolerates) = (plan.machines.as_ref(), plan.tolerates.is_some());
        let operations = Operations::new(kinds, plan.until, machines, tolerates);
        Count { ticking, operations, ..Self::with(RunDelay::open(), None, plan.until, kinds) }
    }

    /// For the next slice of a lane, on the thread of `before`; `empty` is a histogram that was used
    /// before. All requests of a slice are sent and
    /// settled in it, as in a load of a number of requests.
    pub fn of_slice(before: RunDelay, empty: Option<Histogram<u64>>, kinds: &[Operation]) -> Self {
        Self::with(before, empty, Until::Done, kinds)
    }

    /// Gives the reading of the thread's delay to the counts of its next slice.
    pub fn next_run_delay(&mut self) -> RunDelay {
        self.run_delay.next()
    }

    /// For a window that ends like this.
    fn with(
        run_delay: RunDelay,
        empty: Option<Histogram<u64>>,
        until: Until,
        kinds: &[Operation],
    ) -> Self {
        let slices = Slices::new(until);
        let empty = empty.unwrap_or_else(new_histogram);
        Count {
            sum: Counted::nothing(empty, slices.length, &[]),
            operations: Operations::new(kinds, until, None, false),
            received: 0,
            began: 0,
            last_reply: 0,
            sends: WindowBounds::of(until),
            open_loop: None,
            run_delay,
            last_replies: Vec::new(),
            slices,
            ticking: None,
        }
    }

    /// The window opened at this moment, possibly a little earlier than now.
    pub fn window_opens(&mut self, at: Nanos) {
        self.sends.open(at);
        self.slices.begin(at);
        if let Some(ticking) = &mut self.ticking {
            ticking.begin(self.sum.errors.total());
        }
        self.operations.window_opens(at);
        self.reply_bytes = self.received;
        self.run_delay.begins();
        self.load_cpu_ns = clock::thread_cpu();
    }

    /// The window is over.
    pub fn window_closes(&mut self) {
        self.load_cpu_ns = clock::thread_cpu() - self.load_cpu_ns;
        self.run_delay.ends();
        self.sends.close();
        self.slices.end();
        self.reply_bytes = self.received - self.reply_bytes;
        self.operations.window_closes();
    }

    /// The time is `now`: ends the current slice, and the current second, if they are over.
    #[inline]
    pub fn tick(&mut self, now: Nanos) {
        if now >= self.slices.current_ends {
            self.next_slice(now);
        }
    }

    #[cold]
    fn next_slice(&mut self, now: Nanos) {
        self.slices.advance(now);
        let Some(ticking) = &mut self.ticking else { return };
        let second = (self.slices.current / seconds::SLICES) as u32;
        if second > ticking.number() {
            ticking.next(second, so_far(&self.sum), &mut self.sum.histogram);
        }
    }

    /// Hands over the seconds that are over.
    #[inline]
    pub fn hand_over(&mut self, to: &Handed) {
        if let Some(ticking) = &mut self.ticking
            && ticking.has_over()
        {
            ticking.hand_over(to);
        }
    }

    /// The run is over: hands over the last second, too.
    pub fn hand_over_last(&mut self, to: &Handed) {
        let Some(ticking) = &mut self.ticking else { return };
        if self.slices.has_begun() {
            let next = ticking.number() + 1;
            ticking.next(next, so_far(&self.sum), &mut self.sum.histogram);
        }
        ticking.hand_over(to);
    }

    /// Counts the cause of a connection that was lost or could not be opened. There are few causes; any
    /// beyond the first 16, such as texts sent by a server, are counted together as "others".
    pub fn lost(&mut self, cause: &str) {
        const MOST: usize = 16;
        let is_new = !self.causes.contains_key(cause);
        let cause = if is_new && self.causes.len() >= MOST { "others" } else { cause };
        *self.causes.entry(cause.to_owned()).or_default() += 1;
    }

    /// Counts `run` replies received now, inside the window.
    #[inline]
    pub fn record_replies(&mut self, now: Nanos, run: u32) {
        self.tick(now);
        self.requests += u64::from(run);
        self.last_reply = now;
        self.slices.add(run);
    }

    /// Records the latency of `run` requests.
    #[inline]
    pub fn record_latency(&mut self, latency: Nanos, run: u32) {
        self.histogram.saturating_record_n(latency.max(1), u64::from(run));
    }
}

/// What the seconds report, so far.
fn so_far(sum: &Counted) -> SoFar {
    let Counted { requests, refused, errors, .. } = sum;
    SoFar { requests: *requests, errors: errors.total(), refused: *refused }
}

/// The window, the warm-up and the end of a run, as its leader determined them.
#[derive(Default)]
pub(crate) struct RunOutcome {
    /// Start and end of the window, if it was opened.
    pub window: Option<(Nanos, Nanos)>,
    pub warm_up_ns: Nanos,
    pub warm_up_requests: u64,
    pub interrupted: bool,
    pub server_died: bool,
}

/// Adds up the counts of the threads of a process, in the order of their numbers. `part` is the
/// process's part of the load. `kinds` are the kinds of operations, requests first. `window` is the
/// start and end of the window, if it was opened.
pub(crate) fn count(
    counts: Vec<Count>,
    kinds: &[Operation],
    part: Part,
    window: Option<(Nanos, Nanos)>,
    plan: &Plan,
) -> Counted {
    let (begin, end) = window.unwrap_or_default();
    let is_counted = matches!(plan.until, Until::Requests(_) | Until::Done);
    let is_burst = plan.drive.burst().is_some();
    let last_reply = counts.iter().map(|count| count.last_reply).max().unwrap_or_default();
    let end = if is_counted && last_reply > begin { last_reply } else { end };
    let length = Slices::new(plan.until).length;
    let mut sum: Option<Counted> = None;
    for (count, number) in counts.into_iter().zip(part.numbers()) {
        let instances = count.last_replies.iter().zip((number..).step_by(part.threads as usize));
        let took = |(last, i): (&Nanos, u32)| (i, last.saturating_sub(begin));
        let (operations, across) = count.operations.into_counted();
        let of_thread = Counted {
            slices: count.slices.replies,
            slice_ns: length,
            operations,
            across,
            spun_ns: count.sum.spun_ns.min(count.sum.load_cpu_ns),
            run_delay_ns: count.run_delay.inside(),
            turns: count.run_delay.turns(),
            instances_ns: instances.filter(|_| is_burst && window.is_some()).map(took).collect(),
            open_loop: count.open_loop.map(OpenCount::counted),
            ..count.sum
        };
        match &mut sum {
            None => sum = Some(of_thread),
            Some(sum) => sum.add(of_thread).expect("threads of one load count alike"),
        }
    }
    let further = kinds.get(1..).unwrap_or_default();
    let sum = sum.unwrap_or_else(|| Counted::nothing(new_histogram(), length, further));
    Counted { window_ns: end.saturating_sub(begin), ..sum }
}

impl Tally {
    /// Number of operations of a kind inside the window; 0 if none was counted.
    pub fn count_of(&self, operation: &Operation) -> u64 {
        if operation.is_request() {
            return self.requests;
        }
        let counted = self.operations.iter().find(|one| one.operation.name == operation.name);
        counted.map_or(0, |one| one.count)
    }

    /// Builds the result of a plan from the merged counts, the outcome of the run, and the split into
    /// processes.
    pub(crate) fn of(counts: Counted, outcome: &RunOutcome, plan: &Plan, split: Split) -> Tally {
        Tally::of_some(counts, outcome, plan, split, split.threads)
    }

    /// Like [`Tally::of`], of the counts of only `own` of the threads, in [`Split::processes`] processes.
    /// The plan and [`Split::threads`] are those of the whole load.
    pub(crate) fn of_some(
        mut counts: Counted,
        outcome: &RunOutcome,
        plan: &Plan,
        split: Split,
        own: usize,
    ) -> Tally {
        let Split { processes, threads } = split;
        let stages = mem::take(&mut counts.stages).into_iter().enumerate();
        let stages: Vec<Tally> = stages
            .map(|(number, stage)| Tally::of_some(stage, outcome, &plan.stage(number), split, own))
            .collect();
        let of_stages = stages.iter().filter_map(|stage| stage.open_loop.clone());
        let open_loop = of_stages.reduce(OpenTally::together);
        let open_counts = counts.open_loop.take();
        counts.slices.truncate((counts.window_ns / counts.slice_ns) as usize);
        Tally {
            processes,
            threads: own,
            first_wrong: counts.first_wrong.take().map(|first| first.exchange),
            instances_ns: mem::take(&mut counts.instances_ns).into_values().collect(),
            open_loop: open_loop
                .or_else(|| OpenTally::of(open_counts, plan, (own, threads), counts.window_ns)),
            stages,
            warm_up_ns: outcome.warm_up_ns,
            warm_up_requests: outcome.warm_up_requests,
            interrupted: outcome.interrupted,
            verified: None,
            server_died: outcome.server_died,
            counts,
        }
    }
}

/// Correct replies over time.
struct Slices {
    replies: Vec<u64>,
    length: Nanos,
    /// Maximum number of slices.
    most: usize,
    current: usize,
    current_ends: Nanos,
}

impl Slices {
    /// 100 ms each, or a tenth of a window that is shorter than a second.
    fn new(until: Until) -> Self {
        let (length, most) = match until {
            Until::Elapsed(window) => {
                let window = window.as_nanos() as Nanos;
                let length = (window / 10).min(100 * MS);
                (length, (window / length) as usize)
            }
            Until::Requests(_) | Until::Done => (100 * MS, usize::MAX),
        };
        Slices { replies: Vec::new(), length, most, current: 0, current_ends: Nanos::MAX }
    }

    fn begin(&mut self, at: Nanos) {
        self.current_ends = at + self.length;
        let slices = if self.most == usize::MAX { 1 } else { self.most };
        self.replies = vec![0; slices];
        self.last_has_no_end();
    }

    fn has_begun(&self) -> bool {
        !self.replies.is_empty()
    }

    /// The current slice is over at `now`: finds the slice that is not.
    fn advance(&mut self, now: Nanos) {
        while now >= self.current_ends {
            self.current_ends += self.length;
            self.current += 1;
            if self.current == self.replies.len() {
                self.replies.push(0);
            }
            self.last_has_no_end();
        }
    }

    /// Replies that come after the last slice count towards it: a moment late, or because the window is
    /// longer than a whole number of slices.
    fn last_has_no_end(&mut self) {
        if self.current + 1 == self.most {
            self.current_ends = Nanos::MAX;
        }
    }

    /// The window is over.
    fn end(&mut self) {
        self.current_ends = Nanos::MAX;
    }

    /// Adds replies that came before the end of the current slice.
    #[inline]
    fn add(&mut self, replies: u32) {
        self.replies[self.current] += u64::from(replies);
    }
}

#[cfg(test)]
mod tests;
