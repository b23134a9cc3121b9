//! Findings: doubts about a contender or a load, as data with their figures, and the one place that puts
//! them into words.

use crate::LoadShape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A doubt about one contender at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The contender; `None` if it concerns all of them.
    pub contender: Option<String>,
    /// The load; `None` if it concerns all loads of the contender.
    pub load: Option<LoadShape>,
    /// What was found.
    #[serde(flatten)]
    pub doubt: Doubt,
}

/// What was found. Fractions are plain numbers: 0.05 is 5%. A `p` is the p-value of "nothing of the
/// kind"; Holm's correction over all contenders was applied to it before it was reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Doubt {
    /// The rest of the machine (all but contender and load) used more CPU in its slices than in those of
    /// the others of the same block.
    WorkElsewhere {
        /// The additional CPU per operation, nanoseconds.
        ns_per_operation: f64,
        /// The same as a fraction of its cost.
        share: f64,
        /// Student's t over lives.
        p: f64,
    },
    /// It used CPU outside of its start and its slices: between them, or until its exit.
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
    /// A state of the machine was seen rarely, so its ratios are not precise.
    RareState {
        /// Cost in this state over that in the least expensive one.
        factor: f64,
        /// Number of blocks.
        blocks: u32,
        /// Share of all blocks.
        share: f64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(load) = &self.load {
            write!(f, "at {load} ")?;
        }
        if let Some(contender) = &self.contender {
            write!(f, "{contender} ")?;
        }
        self.doubt.fmt(f)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |fraction: f64| format!("{:.1}%", fraction * 100.0);
        match *self {
            Doubt::WorkElsewhere { ns_per_operation, share, p } => write!(
                f,
                "has work done elsewhere: in its slices the rest of the machine used {ns_per_operation:.0} \
                 ns more CPU per operation than in those of the others, {} of its cost (p = {p:.1e}); \
                 look for a kernel thread, a daemon or a sibling that works for it",
                percent(share)
            ),
            Doubt::OutsideSlices { share, p } => write!(
                f,
                "used {} more CPU over its whole life, its start excluded, than in its slices \
                 (p = {p:.1e}): it puts work off, e.g. until it exits, or works without load; its cost \
                 does not include that",
                percent(share)
            ),
            Doubt::Standing { ms_per_s, of_a_slice } => write!(
                f,
                "used {ms_per_s:.1} ms of CPU per second without load, in an idle slice {} of the CPU of \
                 a usual slice: a standing cost, or work postponed until after a slice; its cost per \
                 request does not include it",
                percent(of_a_slice)
            ),
            Doubt::Polls { busy } => write!(
                f,
                "polls: it used {busy:.2} of a CPU without load, so slices do not show its cost; race it \
                 in rounds"
            ),
            Doubt::NotFrozen { share, lives, of } => write!(
                f,
                "ran while others were loaded: it used {} of its CPU time then, and could not be frozen \
                 in {lives} of {of} lives; this disturbs the others, and its cost does not include it",
                percent(share)
            ),
            Doubt::LongSlices { factor, p } => write!(
                f,
                "costs {factor:.3} times as much in long slices as in usual ones, over the baseline's \
                 (p = {p:.1e}): it is faster or slower right after it was frozen; use longer slices"
            ),
            Doubt::ChangesInLife { factor, p } => write!(
                f,
                "changes within a life: its last slices cost {factor:.3} times as much as its first ones, \
                 relative to the others (p = {p:.1e}); use a longer warm-up"
            ),
            Doubt::RareDelays { share, p99_ns, max_ns, p } => write!(
                f,
                "delays a few replies: {share:.5} of them took more than ten times the 99th percentile \
                 of {:.2} ms, the longest {:.1} ms, in most of its starts and unlike the others \
                 (p = {p:.1e}); p99 does not show this",
                p99_ns as f64 / 1e6,
                max_ns as f64 / 1e6
            ),
            Doubt::OtherReplies { bytes, alone } => write!(
                f,
                "answers otherwise under load: its replies had {bytes:.0} bytes on average, the reply to \
                 the same request without load {alone}; nothing checks their contents: write a workload \
                 file that says which content is right"
            ),
            Doubt::SettingsChanged { ref what } => write!(
                f,
                "settings of the machine changed while the contenders ran: {what}; if one of them did it, \
                 start it without that right, and set the old values again"
            ),
            Doubt::MoreThanItsCpus { busy } => write!(
                f,
                "used {busy:.2} times the time of its CPUs: it ran on other CPUs as well, or its clock \
                 is not exact; its cost is doubtful"
            ),
            Doubt::Disturbed { steal, server_waited, load_waited } => {
                let share = |what: &str, share: Option<f64>| {
                    share.map(|share| format!("{what} for {} of the time", percent(share)))
                };
                let causes = [
                    share("the hypervisor gave CPUs to others", steal),
                    share("other programs took the server's CPU", server_waited),
                    share("other programs took the load's CPU", load_waited),
                ];
                let causes: Vec<String> = causes.into_iter().flatten().collect();
                write!(
                    f,
                    "the machine was busy: {}; rates and latencies include it, and ratios may differ \
                     from those of a quiet machine",
                    causes.join(", ")
                )
            }
            Doubt::RareState { factor, blocks, share } => write!(
                f,
                "the machine was in a state in which a request costs {factor:.2} times as much for only \
                 {} of the time ({blocks} blocks): ratios in this state are not precise; a longer race \
                 (--time) sees more of it",
                percent(share)
            ),
        }
    }
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
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
        let text = finding.to_string();
        assert!(text.starts_with("at 64 conn node costs 1.050 times as much in long"), "{text}");
        let of_all = Finding { load: None, ..finding };
        assert!(of_all.to_string().starts_with("node costs"), "{of_all}");
    }
}
