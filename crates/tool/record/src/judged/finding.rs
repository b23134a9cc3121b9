//! Findings: doubts about a contender or a load, as data with their figures.

use crate::{Arrivals, Errors, LoadShape};
use serde::{Deserialize, Serialize, Serializer};

/// A doubt about one contender at one load. In files it has its `remedy`, too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Finding {
    /// The contender; `None` if it concerns all of them.
    pub contender: Option<String>,
    /// The load; `None` if it concerns all loads of the contender.
    pub load: Option<LoadShape>,
    /// What was found.
    #[serde(flatten)]
    pub doubt: Doubt,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Stored<'f> {
            contender: &'f Option<String>,
            load: &'f Option<LoadShape>,
            #[serde(flatten)]
            doubt: &'f Doubt,
            #[serde(skip_serializing_if = "Option::is_none")]
            remedy: Option<&'static str>,
        }
        let Finding { contender, load, doubt } = self;
        Stored { contender, load, doubt, remedy: doubt.remedy() }.serialize(serializer)
    }
}

/// What was found. Fractions are plain numbers: 0.05 is 5%. A `p` is the p-value of "nothing of the
/// kind"; Holm's correction over all contenders was applied to it before it was reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Doubt {
    /// The rest of the machine (all but contender and load) used more CPU in its slices than in those of
    /// the others of the same block: for it, or because another program runs then.
    WorkElsewhere {
        /// The additional CPU per operation, nanoseconds. From a machine of its own, with as many digits as the steps of
        /// the kernel's figures leave.
        ns_per_operation: f64,
        /// The same as a fraction of its cost.
        share: f64,
        /// Student's t over lives.
        p: f64,
    },
    /// It used CPU outside of its start and its slices: between them, until its exit, or more than others while a
    /// load connected.
    OutsideSlices {
        /// As a fraction of that in its slices.
        share: f64,
        /// Student's t over lives.
        p: f64,
    },
    /// It uses CPU without load.
    Standing {
        /// CPU milliseconds per second.
        ms_per_s: f64,
        /// CPU of an idle slice over that of its usual slice.
        of_a_slice: f64,
    },
    /// It uses CPU without load as under load: it polls.
    Polls {
        /// Fraction of one CPU.
        busy: f64,
    },
    /// It ran in the slices of others.
    NotFrozen {
        /// CPU in the slices of others, as a fraction of that in its own.
        share: f64,
        /// Lives in which it could not be frozen, out of `of`.
        lives: u32,
        /// All its lives.
        of: u32,
    },
    /// It ran longer than its slices lasted, because messages to its machine take time.
    ThawedLonger {
        /// How much longer, as a fraction of its slices: the median over its lives.
        share: f64,
    },
    /// Other programs use the contenders' machine, which is not the load's.
    ServerMachineBusy {
        /// How many CPUs they use while no contender runs.
        cpus: f64,
        /// How many more they use in slices, whatever the contender: at least, as all interrupts are taken for those of
        /// contenders. Below zero: less.
        in_slices: f64,
    },
    /// It is cheaper than the baseline by the CPU of its processes, and more expensive by that of its whole machine, or
    /// the other way round.
    MachineRanksOtherwise {
        /// CPU of its processes over that of the baseline.
        ratio: f64,
        /// CPU of its machine over the same for the baseline.
        of_machine: f64,
    },
    /// Its ratio to the baseline differs between long slices and usual ones.
    LongSlices {
        /// The ratio in long slices over that in usual ones.
        factor: f64,
        /// Student's t over lives.
        p: f64,
    },
    /// Its cost changes within a life, unlike that of the others.
    ChangesInLife {
        /// The cost in the last third of a life over that in the first third, over the same of the
        /// others.
        factor: f64,
        /// Student's t over lives.
        p: f64,
    },
    /// A few of its replies are far later than the others, in most of its starts, unlike those of other
    /// contenders.
    RareDelays {
        /// Share of the latencies beyond ten times the 99th percentile.
        share: f64,
        /// 99th percentile of all latencies, nanoseconds.
        p99_ns: u64,
        /// The longest latency, nanoseconds.
        max_ns: u64,
        /// Fisher's exact test over starts.
        p: f64,
    },
    /// Its replies under load are shorter or longer than the reply to the same request without load.
    OtherReplies {
        /// Mean length under load, in bytes.
        bytes: f64,
        /// Length of the reply without load, in bytes.
        alone: u64,
    },
    /// Settings of the machine changed while contenders ran.
    SettingsChanged {
        /// Names, old and new values.
        what: String,
    },
    /// It used more CPU time than its CPUs have.
    MoreThanItsCpus {
        /// CPU time over the time of its CPUs.
        busy: f64,
    },
    /// The machine disturbed all contenders that take turns. Absent shares are below their limits.
    Disturbed {
        /// Share of the CPUs' time that the hypervisor gave to others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        steal: Option<f64>,
        /// Share of its CPUs' time that the server waited for another program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server_waited: Option<f64>,
        /// The same of the load.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load_waited: Option<f64>,
    },
    /// Other programs ran beside most blocks of a duel, so these could not be kept apart.
    BesideOthers {
        /// Number of these blocks.
        blocks: u32,
        /// Number of all blocks.
        of: u32,
    },
    /// It has a cost and no ratio: too few lives remain after those blocks were left out that the machine
    /// disturbed.
    TooFewLives {
        /// Number of lives that remain.
        lives: u32,
        /// Number of its lives.
        of: u32,
    },
    /// A state of the machine was seen rarely, so its ratios are not precise.
    RareState {
        /// Cost in this state over that in the least expensive one.
        factor: f64,
        /// Number of blocks.
        blocks: u32,
        /// Share of all blocks.
        share: f64,
    },
    /// It had errors beside correct replies.
    Errors {
        /// The errors by kind.
        errors: Errors,
        /// Number of correct replies.
        replies: u64,
    },
    /// Some of its starts were not observed.
    PartlyObserved {
        /// Number of starts that were.
        starts: u32,
        /// Number of all starts.
        of: u32,
    },
    /// A histogram of its latencies could not be read.
    NoLatency {
        /// Why.
        why: String,
    },
    /// Short-lived processes of it may have been missed.
    NoControlGroup {
        /// Number of starts without a control group.
        starts: u32,
        /// Number of all starts.
        of: u32,
        /// Whether it ran before the race.
        was_running: bool,
    },
    /// Processes of it that exited inside the window may have used more CPU than was measured.
    UnseenCpu {
        /// As a fraction of the measured CPU.
        share: f64,
    },
    /// Requests were not sent at the requested arrival times in some of its starts.
    OtherArrivals {
        /// What was requested.
        arrivals: Arrivals,
        /// Number of such starts.
        starts: u32,
        /// Number of all starts.
        of: u32,
    },
    /// Members that join and leave were admitted or dismissed slowly.
    FewPassed {
        /// Number of members that joined and left.
        members: u64,
        /// Number that was expected.
        expected: f64,
    },
    /// Its cost still changed when the observation of its warm-up ended.
    NeverSettled {
        /// Length of the observation in seconds.
        seconds: f64,
    },
    /// Warm-ups that were shorter than needed.
    ShortWarmUp {
        /// Number of starts with such a warm-up.
        starts: u32,
        /// Number of all starts.
        of: u32,
    },
    /// The CPUs were busy after its processes had exited.
    WorkLeft {
        /// Number of its rounds after which they were, out of `of`.
        rounds: usize,
        /// Number of its rounds.
        of: usize,
        /// The same of the other contenders.
        others: usize,
        /// Number of rounds of the other contenders.
        of_others: usize,
        /// How long they were busy, in seconds (median).
        seconds: f64,
        /// Fisher's exact test.
        p: f64,
    },
    /// Its cost has two kinds of starts, unlike that of the others.
    UnevenStarts {
        /// Number of starts of the rarer kind, out of `of`.
        starts: usize,
        /// Number of all starts.
        of: usize,
        /// Cost of the rarer kind over that of the other.
        factor: f64,
        /// The probability that chance distributes the starts so.
        p: f64,
    },
    /// Requests from 127.0.0.1 cost more or less than those from other addresses of the machine.
    SourceAddresses {
        /// Their cost over that of the others.
        factor: f64,
        /// Lower end of its interval.
        low: f64,
        /// Upper end of its interval.
        high: f64,
        /// Student's t.
        p: f64,
    },
    /// Its rate and latency do not give the number of requests in flight (Little's law). Only in results of earlier
    /// versions: now [`Kind::InFlight`](crate::Kind::InFlight) is a finding of the cell, and latency is void.
    Little {
        /// Requests in flight over rate × mean latency, minus 1.
        residual: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_stored_with_its_figures_and_read_again() {
        let finding = Finding {
            contender: Some("node".into()),
            load: Some(LoadShape::closed(64, 1)),
            doubt: Doubt::LongSlices { factor: 1.05, p: 0.001 },
        };
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!((&json["kind"], &json["factor"]), (&"long-slices".into(), &1.05.into()));
        assert_eq!(json["remedy"], "use longer slices");
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
    }
}
