//! A trial: one contender under one load in one pass, with the requests of that pass.

use super::{
    load_plan,
    outcome::Concluded,
    reply_seen,
    warm::{Warm, needs},
};
use crate::{
    ask::entrant::Entrant,
    machine_error::MachineError,
    results::events::{Events, unix_ms},
};
use regatta_load::{OpenTally, Tally};
use regatta_record::{
    Asked, FORMAT, LoadShape, NextStart, OperationCounted, Round, RoundStart, Settling, WarmUpDone,
    encode_histogram,
};

/// Runs the trials of a race.
pub(crate) trait RunsTrials {
    /// Runs a trial, and emits its phases. Returns `None` if it was interrupted.
    fn run_trial(
        &self,
        trial: Trial<'_>,
        warm: Warm<'_>,
        events: &mut Events<'_>,
    ) -> Result<Option<Round>, MachineError>;
}

/// A contender under a load in a pass, or in a life of duels.
#[derive(Clone, Copy)]
pub(crate) struct Trial<'a> {
    /// The pass or the life, from 0.
    pub pass: u32,
    pub entrant: &'a Entrant,
    pub load: LoadShape,
    /// Determines its requests. It is the same for all contenders of a pass under this load.
    pub seed: u64,
}

impl Trial<'_> {
    /// Whether this is the trial of a round.
    pub fn is_of(&self, round: &Round) -> bool {
        round.contender == self.entrant.name && round.load == self.load && round.round == self.pass
    }

    /// Returns the event of its start, as that of the only one.
    pub fn start(&self, asked: &Asked) -> RoundStart {
        RoundStart {
            pass: None,
            observes_s: None,
            done: 0,
            all: 1,
            contender: self.entrant.name.clone(),
            load: self.load,
            window: load_plan::window(asked, &self.load),
            next: None,
        }
    }

    /// Returns what the event of the start before it says of it.
    pub fn next(&self) -> NextStart {
        NextStart { contender: self.entrant.name.clone(), load: self.load }
    }

    /// Returns its record before anything is measured.
    pub fn new_round(&self, asked: &Asked, settling: Option<Settling>) -> Round {
        Round {
            format: FORMAT,
            round: self.pass,
            contender: self.entrant.name.clone(),
            workload: asked.workload.clone(),
            load: self.load,
            seed: self.seed,
            started_unix_s: unix_ms() / 1_000,
            load_cpus: asked.cpus.of_load(&self.load).len() as u32,
            settling,
            ..Round::default()
        }
    }

    /// Copies into its record how it ended, and what the load counted.
    pub fn record(&self, round: &mut Round, concluded: Concluded) {
        let Concluded { outcome, remark, tally, background } = concluded;
        (round.outcome, round.remark, round.background) = (outcome, remark, background);
        let Some(tally) = tally else { return };
        // A reply before a close has other headers.
        let is_comparable = !self.load.drive.churns() && reply_seen::is_only_request(self.entrant);
        round.reply_bytes = is_comparable.then_some(tally.reply_bytes);
        count(round, tally);
    }
}

/// Copies the counts and measurements of the load into the round.
fn count(round: &mut Round, tally: Tally) {
    round.requests = tally.requests;
    round.window_ns = tally.window_ns;
    round.errors = tally.errors;
    round.passed = tally.passed;
    round.absent = tally.broadcasts.map_or(0, |counts| counts.absent);
    round.load_cpu_ns = tally.load_cpu_ns;
    round.load_spun_ns = tally.spun_ns;
    round.histogram = encode_histogram(&tally.histogram);
    round.operations = tally.operations.iter().map(OperationCounted::to_round).collect();
    round.open_loop = tally.open_loop.as_ref().map(OpenTally::to_record);
    if tally.processes > 1 {
        let machine = round.machine.get_or_insert_default();
        machine.load_processes = Some(tally.processes as u32);
    }
    if tally.run_delay_ns.is_some() {
        let machine = round.machine.get_or_insert_default();
        (machine.load_run_delay_ns, machine.load_turns) = (tally.run_delay_ns, tally.turns);
    }
    if !round.load.is_counted() {
        let (least, needed_requests) = round.settling.as_ref().map(needs).unwrap_or_default();
        round.warm_up = Some(WarmUpDone {
            ns: tally.warm_up_ns,
            requests: tally.warm_up_requests,
            needed_ns: least.as_nanos() as u64,
            needed_requests,
        });
    }
    round.instances_ns = tally.instances_ns;
    round.slices = tally.counts.slices;
}
