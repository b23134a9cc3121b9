//! Findings in words: the one place where their sentences are written.

use super::causes::time;
use crate::{Doubt, Finding, LoadShape, alike};
use std::{collections::BTreeSet, fmt};

/// Number of contenders, loads and cells up to which each is named.
const NAMED: usize = 4;

/// The contender and the load that a finding is about; `None`: all of them.
type Subject<'f> = (Option<&'f str>, Option<LoadShape>);

/// The findings as sentences, in their order. Those that differ only in their subjects and figures are one
/// sentence. Subjects are counted where there are too many to name each.
pub fn sentences(findings: &[Finding]) -> Vec<String> {
    let remark = |finding| {
        let Finding { contender, load, doubt }: &Finding = finding;
        ((contender.as_deref(), *load), doubt.to_string())
    };
    let sentence =
        |(subjects, text): (Vec<Subject<'_>>, String)| joined(" ", [list(&subjects), text]);
    alike(findings.iter().map(remark)).into_iter().map(sentence).collect()
}

/// Writes subjects, e.g. `a and b at 64 conn`.
fn list(subjects: &[Subject<'_>]) -> String {
    let mut by_load: Vec<(Option<LoadShape>, Vec<&str>)> = Vec::new();
    for (name, load) in subjects {
        match by_load.iter_mut().find(|(other, _)| other == load) {
            Some((_, names)) => names.extend(*name),
            None => by_load.push((*load, name.iter().copied().collect())),
        }
    }
    let loads: Vec<LoadShape> = by_load.iter().filter_map(|(load, _)| *load).collect();
    let same_names = by_load.iter().all(|(_, names)| *names == by_load[0].1);
    if same_names {
        return joined(" ", [named(&by_load[0].1), at(&loads)]);
    }
    if subjects.len() <= NAMED {
        let each =
            by_load.iter().map(|(load, names)| joined(" ", [named(names), at(load.as_slice())]));
        return joined("; ", each);
    }
    let mut seen = BTreeSet::new();
    let all = by_load.iter().flat_map(|(_, names)| names).copied();
    let all: Vec<&str> = all.filter(|name| seen.insert(*name)).collect();
    format!("{} ({} cells at {} loads)", named(&all), subjects.len(), loads.len())
}

fn named(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} contenders", names.len()),
    }
}

fn at(loads: &[LoadShape]) -> String {
    match loads.len() {
        0 => String::new(),
        1..=NAMED => format!("at {}", joined(" and ", loads.iter().map(LoadShape::to_string))),
        many => format!("at {many} loads"),
    }
}

/// The texts that are not empty.
fn joined(between: &str, texts: impl IntoIterator<Item = String>) -> String {
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join(between)
}

impl fmt::Display for Doubt {
    /// What was found, and what may help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what(f)?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl Doubt {
    /// What may help against it.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Doubt::WorkElsewhere { .. } => {
                "look for a kernel thread, interrupts, a daemon or a sibling that works for it"
            }
            Doubt::Polls { .. } => "race it in rounds",
            Doubt::LongSlices { .. } => "use longer slices",
            Doubt::ChangesInLife { .. } => "use a longer warm-up",
            Doubt::OtherReplies { .. } => "write a workload file that says which content is right",
            Doubt::SettingsChanged { .. } => {
                "if one of them did it, start it without that right, and set the old values again"
            }
            Doubt::Errors { .. } => "see `regatta doctor` for limits of this machine",
            Doubt::NoLatency { .. } => "start it again",
            Doubt::NoControlGroup { was_running: true, .. } => {
                "a server that the race starts itself gets a control group"
            }
            Doubt::NoControlGroup { was_running: false, .. } => {
                "`regatta doctor` explains how to get a control group"
            }
            Doubt::UnseenCpu { .. } => "use longer windows (--window)",
            Doubt::NeverSettled { .. } => "another length gives other figures (--settle)",
            Doubt::WorkLeft { .. } => "stop that work together with the server",
            Doubt::UnevenStarts { .. } => {
                "see which rounds these are (rounds.jsonl), and find what varies between its starts"
            }
            Doubt::TooFewLives { .. } => "race again, or for longer (--time)",
            Doubt::RareState { .. } => "a longer race (--time) sees more of it",
            Doubt::ServerMachineBusy { .. } => "stop them there, and see `regatta doctor`",
            Doubt::MachineRanksOtherwise { .. } => {
                "compare what the whole machine spends (the column `machine`)"
            }
            Doubt::OutsideSlices { .. }
            | Doubt::Standing { .. }
            | Doubt::NotFrozen { .. }
            | Doubt::ThawedLonger { .. }
            | Doubt::RareDelays { .. }
            | Doubt::MoreThanItsCpus { .. }
            | Doubt::Disturbed { .. }
            | Doubt::BesideOthers { .. }
            | Doubt::PartlyObserved { .. }
            | Doubt::OtherArrivals { .. }
            | Doubt::FewPassed { .. }
            | Doubt::ShortWarmUp { .. }
            | Doubt::SourceAddresses { .. }
            | Doubt::Little { .. } => return None,
        })
    }

    #[expect(clippy::too_many_lines, reason = "a sentence for each doubt")]
    fn what(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |fraction: f64| format!("{:.1}%", fraction * 100.0);
        match *self {
            Doubt::WorkElsewhere { ns_per_operation, share, p } => write!(
                f,
                "may have work done elsewhere: in its slices the rest of the machine used {} more CPU per operation \
                 than in those of the others, {} of its cost (p = {p:.1e}): work for it, or of another program that \
                 runs then",
                time(ns_per_operation as u64),
                percent(share)
            ),
            Doubt::OutsideSlices { share, p } => write!(
                f,
                "used {} more CPU over its whole life, its start excluded, than in its slices \
                 (p = {p:.1e}): it puts work off, e.g. until it exits or the next load connects, or works \
                 without load; its cost does not include that",
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
                "polls: it used {busy:.2} of a CPU without load, so slices do not show its cost"
            ),
            Doubt::NotFrozen { share, lives, of } => write!(
                f,
                "ran while others were loaded: it used {} of its CPU time then, and could not be frozen \
                 in {lives} of {of} lives; this disturbs the others, and its cost does not include it",
                percent(share)
            ),
            Doubt::ThawedLonger { share } => write!(
                f,
                "ran {} longer than it was loaded, because messages to its machine take time; what it does \
                 without requests meanwhile, e.g. polling, is in its cost: use longer slices (--slice) or a \
                 faster network",
                percent(share)
            ),
            Doubt::ServerMachineBusy { cpus, in_slices } => {
                write!(
                    f,
                    "other programs used {cpus:.2} of a CPU on the server machine while no contender ran, which is \
                     subtracted from what the machine used for each contender, and "
                )?;
                let size = in_slices.abs();
                match in_slices {
                    ..-0.005 => write!(f, "{size:.2} less in slices, so too much is subtracted"),
                    _ => write!(f, "at least {size:.2} more in slices, which is not subtracted"),
                }?;
                f.write_str(": the costs of the machine are doubtful")
            }
            Doubt::MachineRanksOtherwise { ratio, of_machine } => write!(
                f,
                "costs {ratio:.2} times as much as the baseline by the CPU of its processes, and {of_machine:.2} times \
                 as much by that of its whole machine"
            ),
            Doubt::LongSlices { factor, p } => write!(
                f,
                "costs {factor:.3} times as much in long slices as in usual ones, over the baseline's \
                 (p = {p:.1e}): it is faster or slower right after it was frozen"
            ),
            Doubt::ChangesInLife { factor, p } => write!(
                f,
                "changes within a life: its last slices cost {factor:.3} times as much as its first ones, \
                 relative to the others (p = {p:.1e})"
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
                 the same request without load {alone}; nothing checks their contents"
            ),
            Doubt::SettingsChanged { ref what } => {
                write!(f, "settings of the machine changed while the contenders ran: {what}")
            }
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
            Doubt::Errors { errors, replies } => {
                let kinds = errors.by_kind().into_iter().filter(|(_, n)| *n > 0);
                let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {kind}")).collect();
                write!(
                    f,
                    "had errors ({}) beside {replies} correct replies; no latency includes them",
                    kinds.join(", ")
                )
            }
            Doubt::PartlyObserved { starts, of } => {
                write!(f, "was observed in only {starts} of {of} starts; the cost is from these")
            }
            Doubt::NoLatency { ref why } => {
                write!(f, "has no latency: a histogram could not be read ({why})")
            }
            Doubt::NoControlGroup { starts, of, .. } => write!(
                f,
                "had no control group in {starts} of {of} starts, and short-lived processes may \
                 have been missed: its cost is a lower bound"
            ),
            Doubt::UnseenCpu { share } => write!(
                f,
                "may have used {} more CPU than was measured, in processes that exited inside the \
                 window",
                percent(share)
            ),
            Doubt::OtherArrivals { arrivals, starts, of } => write!(
                f,
                "got requests at other times than requested ({}) in {starts} of {of} starts; see \
                 `arrivals` in rounds.jsonl",
                arrivals.in_words()
            ),
            Doubt::FewPassed { members, expected } => write!(
                f,
                "had {members} members that joined and left, where about {expected:.0} were expected: \
                 it admitted or dismissed them slowly, so its load was lighter than declared"
            ),
            Doubt::NeverSettled { seconds } => write!(
                f,
                "never settled: the cost still changed when the observation ended after {seconds:.0} s, \
                 so the figures are those of a server loaded for that long"
            ),
            Doubt::ShortWarmUp { starts, of } => write!(
                f,
                "had a warm-up shorter than it needs in {starts} of {of} starts, because it was slower \
                 then than when it was observed"
            ),
            Doubt::WorkLeft { rounds, of, others, of_others, seconds, p } => write!(
                f,
                "leaves work behind: after {rounds} of {of} rounds the CPUs were busy for another \
                 {seconds:.1} s (median), after {others} of {of_others} rounds of the other contenders \
                 (p = {p:.1e}), although all of its processes had exited; the next contender was started \
                 only when the CPUs were idle again (after 3 s at most)"
            ),
            Doubt::UnevenStarts { starts, of, factor, p } => write!(
                f,
                "differs between starts: in {starts} of {of} its cost is {factor:.2}× that of the others, \
                 and no other contender shows this (p = {p:.4}), so its mean cost is that of no start"
            ),
            Doubt::SourceAddresses { factor, low, high, p } => write!(
                f,
                "treats source addresses differently: requests from 127.0.0.1 cost {factor:.2}× \
                 [{low:.2}–{high:.2}] as much as requests from other addresses of this machine \
                 (p = {p:.1e}); the connections of rounds come from addresses that it cannot know in \
                 advance, so its figures do not benefit"
            ),
            Doubt::Little { residual } => write!(
                f,
                "had a number of requests in flight that differs from rate × mean latency (Little's law) \
                 by {:+.0}%. Above 0%, connections were idle, or the load was late to read and \
                 send again; below 0%, the latencies are longer than the rate permits",
                residual * 100.0
            ),
            Doubt::BesideOthers { blocks, of } => write!(
                f,
                "other programs ran beside {blocks} of {of} blocks, too many to keep them apart: ratios \
                 may differ from those of a quiet machine"
            ),
            Doubt::TooFewLives { lives, of } => write!(
                f,
                "has a cost and no ratio: a ratio needs 3 lives, and {lives} of {of} count; in each block of the \
                 others the machine disturbed it or the baseline"
            ),
            Doubt::RareState { factor, blocks, share } => write!(
                f,
                "the machine was in a state in which a request costs {factor:.2} times as much for only \
                 {} of the time ({blocks} blocks): ratios in this state are not precise",
                percent(share)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(contender: &str, connections: u32, share: f64) -> Finding {
        let load = Some(LoadShape::closed(connections, 1));
        Finding { contender: Some(contender.into()), load, doubt: Doubt::UnseenCpu { share } }
    }

    fn said(findings: &[Finding]) -> Vec<String> {
        let all = sentences(findings).into_iter();
        all.map(|text| text.split(" may have used ").collect::<Vec<_>>().join(" | ")).collect()
    }

    #[test]
    fn findings_that_differ_only_in_subjects_and_figures_are_one_sentence() {
        let start = |text: &str| text.split(" more CPU").next().unwrap().to_owned();
        let of = |findings: &[Finding]| {
            said(findings).iter().map(|text| start(text)).collect::<Vec<_>>()
        };
        let [a, b, c] = [missed("a", 64, 0.02), missed("b", 64, 0.035), missed("b", 1000, 0.02)];
        assert_eq!(of(std::slice::from_ref(&a)), ["a at 64 conn | 2.0%"]);
        assert_eq!(of(&[a.clone(), b.clone()]), ["a and b at 64 conn | 2.0–3.5%"]);
        assert_eq!(of(&[b.clone(), c.clone()]), ["b at 64 conn and 1000 conn | 2.0–3.5%"]);
        assert_eq!(of(&[a.clone(), b, c]), ["a and b at 64 conn; b at 1000 conn | 2.0–3.5%"]);
        let ended = Finding { doubt: Doubt::PartlyObserved { starts: 1, of: 2 }, ..a.clone() };
        assert_eq!(sentences(&[a, ended]).len(), 2);
        assert!(sentences(&[]).is_empty());
    }

    #[test]
    fn many_subjects_are_counted() {
        let of = |names: &[&str], loads: &[u32]| -> Vec<Finding> {
            let each =
                |load: &u32| names.iter().map(|name| missed(name, *load, 0.02)).collect::<Vec<_>>();
            loads.iter().flat_map(each).collect()
        };
        let who = |findings: &[Finding]| said(findings)[0].split(" | ").next().unwrap().to_owned();
        assert_eq!(who(&of(&["a", "b", "c", "d"], &[1])), "a, b, c and d at 1 conn");
        assert_eq!(who(&of(&["a", "b", "c", "d", "e"], &[1])), "5 contenders at 1 conn");
        assert_eq!(who(&of(&["a"], &[1, 2, 3, 4, 5])), "a at 5 loads");
        let mut uneven = of(&["a", "b"], &[1, 2]);
        uneven.extend(of(&["b"], &[3]));
        assert_eq!(who(&uneven), "a and b (5 cells at 3 loads)");
    }

    #[test]
    fn what_other_programs_may_have_done_is_said_as_such() {
        let doubt = Doubt::WorkElsewhere { ns_per_operation: 1.9e6, share: 0.948, p: 5.7e-7 };
        let text = doubt.to_string();
        let said = "may have work done elsewhere: in its slices the rest of the machine used 1.9 ms more CPU";
        assert!(text.starts_with(said), "{text}");
        assert!(text.contains("work for it, or of another program that runs then"), "{text}");
        let busy = |in_slices| Doubt::ServerMachineBusy { cpus: 0.37, in_slices }.to_string();
        let less = "and 0.12 less in slices, so too much is subtracted";
        assert!(busy(-0.12).contains(less), "{}", busy(-0.12));
        let more = "and at least 0.30 more in slices, which is not subtracted";
        assert!(busy(0.3).contains(more), "{}", busy(0.3));
    }

    #[test]
    fn a_finding_on_the_machine_has_no_subject() {
        let doubt = Doubt::SettingsChanged { what: "swappiness".into() };
        let all = [Finding { contender: None, load: None, doubt }];
        assert!(sentences(&all)[0].starts_with("settings of the machine changed"));
        let doubt = Doubt::RareState { factor: 1.5, blocks: 3, share: 0.02 };
        let state = Finding { contender: None, load: Some(LoadShape::closed(64, 1)), doubt };
        assert!(sentences(&[state])[0].starts_with("at 64 conn the machine was in a state"));
        let doubt = Doubt::TooFewLives { lives: 2, of: 3 };
        let load = Some(LoadShape::closed(64, 1));
        let lacking = Finding { contender: Some("go".into()), load, doubt };
        let said =
            "go at 64 conn has a cost and no ratio: a ratio needs 3 lives, and 2 of 3 count;";
        assert!(sentences(&[lacking])[0].starts_with(said));
        let doubt = Doubt::BesideOthers { blocks: 30, of: 44 };
        let busy = Finding { contender: None, load: Some(LoadShape::closed(64, 1)), doubt };
        let said = "at 64 conn other programs ran beside 30 of 44 blocks, too many to keep them apart: ratios";
        assert!(sentences(&[busy])[0].starts_with(said));
    }
}
