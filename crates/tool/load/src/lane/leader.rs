//! Leads the threads of a lane. Its director opens the connections and carries out the last checks;
//! between these, each slice is driven until its length is over, and then drained.
//!
//! A phase of a slice ends at once: threads that may sleep are woken. The server's patience counts only
//! the time in slices.

use crate::{
    Error, Plan,
    clock::Nanos,
    counts::tally::RunOutcome,
    running::{
        director::{CHECK_EVERY, Director},
        leads::Leads,
        orders::{Order, SliceBarrier},
        pulse::Pulse,
        shared::{Phase, Shared, Sums},
    },
};

/// Leads a lane.
pub(super) struct Leader<'a> {
    director: Director<'a>,
    shared: &'a Shared,
    rest: &'a SliceBarrier,
    pulse: Pulse,
    /// The slice that is driven or drained.
    slice: Option<Driven>,
    /// Time in slices before it.
    before: Nanos,
    /// Requests settled and connections refused before it.
    settled: u64,
    refused: u64,
    next_check: Nanos,
    /// Whether the last checks have begun.
    is_ending: bool,
}

/// The slice that runs.
struct Driven {
    began: Nanos,
    ends: Nanos,
    /// When it stopped sending.
    stopped: Option<Nanos>,
}

impl<'a> Leader<'a> {
    pub fn new(
        plan: &Plan,
        director: Director<'a>,
        shared: &'a Shared,
        rest: &'a SliceBarrier,
    ) -> Self {
        Leader {
            director: director.of_lane(),
            shared,
            rest,
            pulse: Pulse::new(plan),
            slice: None,
            before: 0,
            settled: 0,
            refused: 0,
            next_check: 0,
            is_ending: false,
        }
    }

    /// How the lane ended.
    pub fn outcome(self) -> Result<RunOutcome, Error> {
        self.director.outcome()
    }

    /// A slice is driven.
    fn driving(&mut self, now: Nanos) {
        let sums = self.shared.sums();
        if self.slice.is_none() {
            let Order::Slice(slice) = self.rest.order() else { return };
            let began = slice.begins;
            self.slice = Some(Driven { began, ends: began + slice.length, stopped: None });
        }
        let is_refused = self.is_refused(&sums);
        let Some(slice) = &mut self.slice else { return };
        self.next_check = now + CHECK_EVERY;
        if now < slice.ends {
            self.next_check = self.next_check.min(slice.ends);
        } else if sums.all_entered && !is_refused {
            slice.stopped = Some(now);
            self.next_check = now;
            return self.shared.hasten(Phase::Draining);
        }
        if !self.pulse.is_alive(self.before + (now - slice.began), &sums) {
            self.director.server_died(now);
        }
    }

    /// Whether connections were refused in this slice and nothing was settled. Then it goes on until the
    /// server accepts one, or counts as dead.
    fn is_refused(&self, sums: &Sums) -> bool {
        sums.awaited == 0 && sums.settled == self.settled && sums.refused > self.refused
    }

    /// The lane rests, with these sums.
    fn rests(&mut self, sums: &Sums) {
        (self.settled, self.refused) = (sums.settled, sums.refused);
    }

    /// Nothing more is sent, except what was due: waits for the last reply.
    fn draining(&mut self, now: Nanos) {
        let Some(Driven { began, stopped: Some(stopped), .. }) = self.slice else { return };
        self.next_check = now + CHECK_EVERY;
        let sums = self.shared.sums();
        if self.director.is_drained(&sums) {
            self.slice = None;
            self.before += now - began;
            self.next_check = now;
            self.rests(&sums);
            self.shared.hasten(Phase::Resting);
        } else if now - stopped > self.director.longest_drain() {
            // Something is owed that is no reply to a request. The threads report it when they end.
            self.shared.hasten(Phase::Ended);
        }
    }
}

impl Leads for Leader<'_> {
    fn next_check(&self) -> Nanos {
        match self.shared.phase() {
            Phase::Starting | Phase::Connecting => self.director.next_check(),
            Phase::Draining if self.is_ending => self.director.next_check(),
            _ => self.next_check,
        }
    }

    fn turn(&mut self, now: Nanos) {
        if self.director.ends_early(now) {
            return;
        }
        match self.shared.phase() {
            Phase::WarmingUp | Phase::Measuring if now < self.next_check => {}
            Phase::WarmingUp | Phase::Measuring => self.driving(now),
            Phase::Draining if self.slice.is_some() => self.draining(now),
            Phase::Draining if !self.is_ending => {
                self.is_ending = true;
                self.director.begin(now);
            }
            _ => {
                self.director.turn(now);
                if self.shared.phase() == Phase::Resting {
                    self.rests(&self.shared.sums());
                }
            }
        }
    }
}
