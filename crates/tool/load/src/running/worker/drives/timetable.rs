//! The stages of an open loop on one load thread: the schedule of each, and what is counted for each. A
//! window without stages has one. Reads no clock for requests; times are given.
//!
//! A request belongs to the stage in which it was due. Replies and CPU time belong to the stage in which
//! they came, so the CPU time of a stage is that of the replies in it.

use crate::{
    Plan,
    clock::{self, Nanos},
    counts::tally::Count,
    histogram::new_histogram,
    open_loop::{
        arrival_check::Seen,
        open_tally::OpenCount,
        schedule::{Part, Schedule},
    },
    run_delay::RunDelay,
    running::orders::Slice,
};
use regatta_record::{Arrivals, Counted, Stage};
use std::num::NonZeroU32;

/// The stages of a window, one after the other.
pub(super) struct Timetable {
    /// At least one.
    stages: Vec<OneStage>,
    /// The stage whose schedule is in use.
    sending: usize,
    /// The stage that runs now.
    running: usize,
    /// When the running stage ends; [`Nanos::MAX`] if it is the last, and outside the window.
    running_ends: Nanos,
    /// The thread's counters when the running stage began, if there are several.
    marks: Option<Marks>,
}

struct OneStage {
    schedule: Schedule,
    rate: NonZeroU32,
    length: Nanos,
    /// When it begins; [`Nanos::MAX`] before the window.
    begins: Nanos,
    count: OpenCount,
    /// What only a stage among several counts.
    inside: Option<Box<Counted>>,
}

struct Marks {
    at: Nanos,
    cpu: Nanos,
    spun: Nanos,
    run_delay: RunDelay,
}

impl Timetable {
    /// The stages of a plan for one load thread.
    pub fn new(plan: &Plan, arrivals: Arrivals, part: Part) -> Self {
        let rates = plan.rates();
        let several = rates.len() > 1 || !plan.stages.is_empty();
        let one = |(number, stage): (usize, &Stage)| {
            // Stream 1 is that of the warm-up.
            let stream = if number == 0 { 0 } else { number as u64 + 1 };
            OneStage {
                schedule: Schedule::new(arrivals, stage.rate, part, plan.seed, stream),
                rate: stage.rate,
                length: stage.ns,
                begins: Nanos::MAX,
                count: OpenCount::new(Seen::new(arrivals, stage.rate.get(), part.threads)),
                inside: several.then(|| nothing(stage.ns)),
            }
        };
        Timetable {
            stages: rates.iter().enumerate().map(one).collect(),
            sending: 0,
            running: 0,
            running_ends: Nanos::MAX,
            marks: None,
        }
    }

    /// The window opened at this moment. `spun` is the time that the thread has spun so far.
    pub fn opens(&mut self, at: Nanos, spun: Nanos) {
        let mut begins = at;
        for stage in &mut self.stages {
            stage.begins = begins;
            stage.count.seen.window_opens(begins, stage.length);
            begins += stage.length;
        }
        if self.stages[0].inside.is_some() {
            self.marks = Some(Marks::now(at, spun));
            self.running_ends = self.end_of(0);
        }
    }

    /// A slice of a lane begins at this moment. A lane has no stages.
    pub fn slice_opens(&mut self, arrivals: Arrivals, part: Part, slice: Slice) {
        let Slice { begins, length, seed, .. } = slice;
        let stage = &mut self.stages[0];
        stage.schedule.restart(arrivals, stage.rate, part, seed);
        (stage.begins, stage.length) = (begins, length);
        stage.count.seen.slice_opens(begins, length);
    }

    /// A slice of a lane is over: moves its counts.
    pub fn count_slice(&mut self, count: &mut Count) {
        count.open_loop = Some(self.stages[0].count.take());
    }

    /// When a stage ends by the clock; [`Nanos::MAX`] for the last, which ends with the window.
    fn end_of(&self, stage: usize) -> Nanos {
        self.stages.get(stage + 1).map_or(Nanos::MAX, |next| next.begins)
    }

    /// Returns when the next request is due; [`Nanos::MAX`] if that is not before `ends`.
    pub fn next_due(&mut self, ends: Nanos) -> Nanos {
        loop {
            let stage = &self.stages[self.sending];
            let due = stage.begins.saturating_add(stage.schedule.first());
            let end = self.end_of(self.sending);
            if due < end.min(ends) {
                return due;
            }
            if due < end || end >= ends {
                return Nanos::MAX;
            }
            self.sending += 1;
        }
    }

    /// The schedule in use.
    pub fn schedule(&mut self) -> &mut Schedule {
        &mut self.stages[self.sending].schedule
    }

    /// The stage in which a request was due.
    #[inline]
    fn of(&mut self, intended: Nanos) -> &mut OneStage {
        let last = self.stages.len() - 1;
        let later = self.stages[1..].partition_point(|stage| stage.begins <= intended);
        &mut self.stages[later.min(last)]
    }

    /// The counts of the requests that were due when this one was.
    #[inline]
    pub fn count(&mut self, intended: Nanos) -> &mut OpenCount {
        &mut self.of(intended).count
    }

    /// Records the latency of a request, if there are stages.
    #[inline]
    pub fn record_latency(&mut self, intended: Nanos, latency: Nanos) {
        if let Some(inside) = &mut self.of(intended).inside {
            inside.histogram.saturating_record(latency.max(1));
        }
    }

    /// Counts replies that came now, inside the window.
    #[inline]
    pub fn record_replies(&mut self, replies: u32) {
        if let Some(inside) = &mut self.stages[self.running].inside {
            inside.requests += u64::from(replies);
        }
    }

    /// Whether the running stage is over.
    #[inline]
    pub fn is_stage_over(&self, now: Nanos) -> bool {
        now >= self.running_ends
    }

    /// The running stage is over: those that began by now follow.
    #[cold]
    pub fn next_stage(&mut self, now: Nanos, spun: Nanos) {
        while now >= self.running_ends {
            self.mark(self.running_ends, spun);
            self.running += 1;
            self.running_ends = self.end_of(self.running);
        }
    }

    /// The window is over.
    pub fn closes(&mut self, now: Nanos, spun: Nanos) {
        self.next_stage(now, spun);
        self.mark(now, spun);
        self.running_ends = Nanos::MAX;
        self.marks = None;
    }

    /// The running stage ended at `end`: notes what the thread used in it.
    fn mark(&mut self, end: Nanos, spun: Nanos) {
        let inside = self.stages[self.running].inside.as_mut();
        let Some((inside, marks)) = inside.zip(self.marks.as_mut()) else { return };
        marks.run_delay.ends();
        let cpu = clock::thread_cpu();
        inside.window_ns = end.saturating_sub(marks.at);
        inside.load_cpu_ns = cpu - marks.cpu;
        inside.spun_ns = (spun - marks.spun).min(inside.load_cpu_ns);
        inside.run_delay_ns = marks.run_delay.inside();
        inside.turns = marks.run_delay.turns();
        (marks.at, marks.cpu, marks.spun) = (end, cpu, spun);
        marks.run_delay.begins();
    }

    /// Adds the counts to those of the thread.
    pub fn add_to(self, count: &mut Count) {
        for stage in self.stages {
            match stage.inside {
                None => count.open_loop = Some(stage.count),
                Some(inside) => {
                    // The first one is there even if there was no window.
                    if inside.window_ns > 0 || count.stages.is_empty() {
                        count.stages.push(of_stage(*inside, stage.count));
                    }
                }
            }
        }
    }
}

impl Marks {
    fn now(at: Nanos, spun: Nanos) -> Self {
        let mut run_delay = RunDelay::open();
        run_delay.begins();
        Marks { at, cpu: clock::thread_cpu(), spun, run_delay }
    }
}

/// The counts of one stage among several, of this length. Run delay and turns are not known before its end.
fn nothing(length: Nanos) -> Box<Counted> {
    let counted = Counted::nothing(new_histogram(), length, &[]);
    Box::new(Counted { run_delay_ns: None, turns: None, ..counted })
}

/// Adds the outcomes of the requests that were due in a stage to its other counts.
fn of_stage(mut inside: Counted, count: OpenCount) -> Counted {
    inside.slices = vec![inside.requests];
    inside.errors.timeout = count.timed_out;
    inside.replies = inside.histogram.len();
    inside.open_loop = Some(count.counted());
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MS, SECOND};
    use regatta_script::Workload;

    /// Stages of milliseconds and constant rates.
    fn timetable(stages: &[(u64, u32)]) -> Timetable {
        let stage =
            |&(ms, rate): &(u64, u32)| Stage { ns: ms * MS, rate: NonZeroU32::new(rate).unwrap() };
        let workload = Workload::parse("double").unwrap();
        let plan = Plan::closed(([127, 0, 0, 1], 1).into(), workload);
        let plan = plan.in_stages(stages.iter().map(stage).collect(), Arrivals::Constant);
        Timetable::new(&plan, Arrivals::Constant, Part { thread: 0, threads: 1 })
    }

    fn due(timetable: &mut Timetable, ends: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| {
            let due = timetable.next_due(ends);
            (due < Nanos::MAX).then(|| {
                timetable.schedule().take();
                due
            })
        })
        .collect()
    }

    #[test]
    fn each_stage_sends_at_its_rate_from_its_beginning() {
        let mut timetable = timetable(&[(100, 20), (200, 10), (100, 1), (100, 40)]);
        timetable.opens(SECOND, 0);
        let sends = due(&mut timetable, SECOND + 500 * MS);
        let after = |ms: &[u64]| ms.iter().map(|ms| SECOND + ms * MS).collect::<Vec<_>>();
        assert_eq!(sends, after(&[0, 50, 100, 200, 300, 400, 425, 450, 475]));
        assert_eq!(timetable.next_due(SECOND + 600 * MS), SECOND + 500 * MS, "the last has no end");
    }

    #[test]
    fn an_early_end_of_the_window_ends_the_sends_of_every_stage() {
        let mut timetable = timetable(&[(100, 20), (100, 20), (100, 20)]);
        timetable.opens(SECOND, 0);
        assert_eq!(due(&mut timetable, SECOND + 120 * MS).len(), 3);
        assert_eq!(timetable.next_due(SECOND + 120 * MS), Nanos::MAX);
    }

    #[test]
    fn a_request_counts_in_the_stage_in_which_it_was_due_and_a_reply_in_the_one_in_which_it_came() {
        let mut timetable = timetable(&[(100, 20), (100, 20), (100, 20)]);
        timetable.opens(SECOND, 5);
        let (first, second) = (SECOND + 50 * MS, SECOND + 100 * MS);
        for intended in [first, second - 1, second] {
            timetable.count(intended).written(intended, 0, 0);
        }
        timetable.record_replies(1);
        assert!(!timetable.is_stage_over(second - 1) && timetable.is_stage_over(second));
        timetable.next_stage(second, 5);
        timetable.record_replies(2);
        timetable.record_latency(second - 1, 7 * MS);
        timetable.count(second - 1).answered(0, 0, 7 * MS);
        // A thread that was busy for longer than a stage.
        timetable.closes(SECOND + 300 * MS, 5);
        timetable.count(SECOND + 299 * MS).lost += 1;
        let mut count = count();
        timetable.add_to(&mut count);
        let of = |value: fn(&Counted) -> u64| count.stages.iter().map(value).collect::<Vec<_>>();
        assert_eq!(of(|stage| stage.open_loop.as_ref().unwrap().due), [2, 1, 0]);
        assert_eq!(of(|stage| stage.open_loop.as_ref().unwrap().lost), [0, 0, 1]);
        assert_eq!(of(|stage| stage.requests), [1, 2, 0]);
        assert_eq!(of(|stage| stage.histogram.len()), [1, 0, 0]);
        assert_eq!(of(|stage| stage.window_ns), [100 * MS; 3]);
        assert!(count.open_loop.is_none());
    }

    #[test]
    fn stages_that_did_not_begin_are_left_out() {
        let mut timetable = timetable(&[(100, 20), (100, 20), (100, 20)]);
        timetable.opens(SECOND, 0);
        timetable.closes(SECOND + 130 * MS, 0);
        let mut ended = count();
        timetable.add_to(&mut ended);
        let lengths: Vec<_> = ended.stages.iter().map(|stage| stage.window_ns).collect();
        assert_eq!(lengths, [100 * MS, 30 * MS]);
        // Without a window there is nothing, and the load still had stages.
        let mut never = count();
        self::timetable(&[(100, 20), (100, 20)]).add_to(&mut never);
        assert_eq!(never.stages.len(), 1);
    }

    #[test]
    fn a_window_without_stages_counts_as_a_whole() {
        let workload = Workload::parse("double").unwrap();
        let plan = Plan {
            drive: regatta_record::Drive::Open {
                rate: NonZeroU32::new(20).unwrap(),
                arrivals: Arrivals::Constant,
            },
            ..Plan::closed(([127, 0, 0, 1], 1).into(), workload)
        };
        let part = Part { thread: 0, threads: 1 };
        let mut timetable = Timetable::new(&plan, Arrivals::Constant, part);
        timetable.opens(SECOND, 0);
        assert!(!timetable.is_stage_over(Nanos::MAX - 1));
        assert_eq!(due(&mut timetable, 2 * SECOND).len(), 20);
        timetable.count(SECOND).written(SECOND, 0, 0);
        timetable.closes(2 * SECOND, 0);
        let mut count = count();
        timetable.add_to(&mut count);
        assert!(count.stages.is_empty());
        assert_eq!(count.open_loop.map(|open| open.due), Some(1));
    }

    fn count() -> Count {
        let workload = Workload::parse("double").unwrap();
        Count::new(&Plan::closed(([127, 0, 0, 1], 1).into(), workload), &[])
    }
}
