//! Doubts about a race: properties that may mislead its reader, printed beside the figures. Those that are data
//! ([`findings`]) get their sentences in `record::text::words`; the others are one sentence with advice each.

mod addresses;
mod behind;
mod cells;
mod duels;
mod machine_work;
mod machines;
mod pilots;
mod starts;

use crate::{
    compared::field::{Field, TIE_MARGIN, Twin},
    statistics::{self, Margins, known},
    verdict,
};
use regatta_record::{
    Asked, Cell, Figure, Finding, Kind, NULL, Relation, Unknown, alike, joined, sentences,
};
use std::collections::BTreeSet;

/// Minimum number of rounds of a published table (method, rule 2).
pub const ROUNDS: u32 = 5;
/// Maximum difference between user + system time (sampled by tick) and CPU time, as a fraction.
pub const SPLIT: f64 = 0.10;
/// CPU time in seconds from which the sampled split is compared.
const SPLIT_FROM_S: f64 = 1.0;

/// All findings, the most serious first.
pub fn findings(asked: &Asked, fields: &[Field]) -> Vec<Finding> {
    let mut findings = duels::findings(fields);
    findings.extend(machine_work::findings(asked, fields));
    findings.extend(starts::uneven(fields));
    findings.extend(addresses::favours(fields));
    findings.extend(behind::left_work(fields));
    findings.extend(cells::findings(asked, fields));
    findings
}

/// All doubts about a race, the most serious first. `twins` are by field;
/// `findings` are those of [`findings`].
#[expect(clippy::too_many_arguments, reason = "what doubts are about")]
pub fn doubts(
    asked: &Asked,
    fields: &[Field],
    cells: &[Cell],
    twins: &[Option<Twin>],
    complete: bool,
    findings: &[Finding],
) -> Vec<String> {
    let mut doubts = Vec::new();
    doubts.extend(incomplete(asked, fields, complete));
    doubts.extend(few_rounds(asked));
    doubts.extend(asked.left_out.iter().map(|load| format!("left out: {load}")));
    doubts.extend(baseline_without_cost(asked, cells));
    doubts.extend(pilots::doubts(asked, cells));
    doubts.extend(asked.doubts_of_running());
    doubts.extend(asked.doubts_of_contents(cells));
    doubts.extend(machines::doubts(asked, cells));
    doubts.extend(shared_cpus(asked));
    doubts.extend(shared_cores(asked));
    doubts.extend(no_twin(asked, fields, twins));
    doubts.extend(twin_differs(asked, fields, twins));
    doubts.extend(sentences(findings));
    doubts.extend(sources(fields));
    doubts.extend(no_null_server(asked, fields));
    doubts.extend(remarks(asked, fields));
    doubts
}

fn incomplete(asked: &Asked, fields: &[Field], complete: bool) -> Option<String> {
    if asked.precision.is_some() {
        return (!complete).then(|| {
            "the race is incomplete: it needs more starts for the requested precision; `regatta \
             race --resume` with its directory runs them"
                .to_owned()
        });
    }
    let open = || fields.iter().flat_map(|f| &f.contenders).filter(|o| o.settled.is_none());
    let wanted: u32 = open().map(|_| asked.rounds).sum();
    let run: u32 = open().map(|o| o.run.min(asked.rounds)).sum();
    (run < wanted).then(|| {
        format!(
            "the race is incomplete: {run} of {wanted} starts are done; `regatta race --resume` \
             with its directory runs the rest"
        )
    })
}

fn few_rounds(asked: &Asked) -> Option<String> {
    let n = asked.rounds;
    (n < ROUNDS).then(|| {
        let word = if n == 1 { "round" } else { "rounds" };
        let intervals = match n {
            1 => "there are no intervals, so no costs, rates or ratios are shown",
            _ => "the intervals are wide",
        };
        format!(
            "only {n} {word}: {intervals}; run at least {ROUNDS} before you publish a result \
             (--rounds {ROUNDS})"
        )
    })
}

fn baseline_without_cost(asked: &Asked, cells: &[Cell]) -> Vec<String> {
    let raced = |c: &&Cell| c.contender == asked.baseline && c.verdict.kind() != Kind::Skipped;
    let base = cells.iter().filter(raced);
    // With one round no cell has a cost; another doubt reports that.
    let remarks = base
        .filter(|c| {
            c.load.beside.is_none()
                && (c.verdict.voids(Figure::Cost)
                    || c.rounds > 1
                        && c.cost_ns_per_request.is_none()
                        && !c.is_unknown(Unknown::Cost))
        })
        .map(|c| {
            let text = format!(
                "the baseline {} has no cost to compare with ({}), so there are no ratios; choose \
             another (--baseline)",
                c.contender,
                c.verdict.kind().name()
            );
            (c.load.to_string(), text)
        });
    at_loads(remarks)
}

/// Merges remarks of `(load, text)`: one sentence per distinct text, after the names of its loads.
fn at_loads(remarks: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let sentence =
        |(loads, text): (Vec<String>, String)| format!("at {} {text}", loads.join(" and "));
    alike(remarks).into_iter().map(sentence).collect()
}

fn shared_cpus(asked: &Asked) -> Option<String> {
    let server: BTreeSet<_> = asked.cpus.server.iter().collect();
    let shared: Vec<String> =
        asked.cpus.load.iter().filter(|c| server.contains(c)).map(u32::to_string).collect();
    (!asked.cpus.apart && !shared.is_empty()).then(|| {
        format!(
            "server and load share CPU {}: they take time from each other, so trust costs only; \
             separate them with --server-cpus and --load-cpus",
            shared.join(", ")
        )
    })
}

fn shared_cores(asked: &Asked) -> Option<String> {
    let shared = asked.cpus.shared_cores(&asked.setup.cores);
    let shared: Vec<String> = shared.iter().map(|cpus| joined(cpus, " and ")).collect();
    (!shared.is_empty()).then(|| {
        format!(
            "server and load share a physical core (CPUs {}): each takes time from the other without \
             waiting for it, so costs are too high and differ with the load; give each its own cores \
             with --server-cpus and --load-cpus",
            shared.join("; ")
        )
    })
}

/// Reports that nothing shows how two copies of the same program compare on this machine.
fn no_twin(asked: &Asked, fields: &[Field], twins: &[Option<Twin>]) -> Option<String> {
    // Without any cost there is no noise of costs.
    let has_cost = asked.loads.iter().any(|load| load.beside.is_none());
    if !has_cost || twins.iter().flatten().any(|twin| statistics::is_known(&twin.ratio.ratio())) {
        return None;
    }
    let Some(original) = &asked.twin_of else {
        return Some(
            "no contender was entered twice, so the noise floor is not known: nothing shows that two \
             copies of the same program cost the same here; enter a twin"
                .to_owned(),
        );
    };
    let twin = asked.twin().unwrap_or_default();
    // More rounds would be void or fail too.
    let why = [original, &twin].into_iter().find_map(|name| {
        let why: Option<Vec<String>> = fields.iter().map(|field| field.why_no_cost(name)).collect();
        Some(format!("{name} {}", why?.into_iter().next()?))
    });
    let why = why.filter(|_| asked.rounds > 1).unwrap_or_else(|| match twins.iter().flatten().next() {
        None => format!("{original} and its twin have too few starts in common; run more of them"),
        Some(_) => format!(
            "{original} and its twin, the same program, differ by more than a factor of ten, or their \
             interval does; stop other programs, or race for longer"
        ),
    });
    Some(format!("the noise floor is not known: {why}"))
}

/// Reports a twin that differs from its original. It is judged like any other contender, with Holm's
/// correction over the loads.
fn twin_differs(asked: &Asked, fields: &[Field], twins: &[Option<Twin>]) -> Vec<String> {
    let Some(original) = &asked.twin_of else { return Vec::new() };
    let remarks = fields.iter().zip(twins).filter_map(|(field, twin)| {
        let Twin { ratio, differs } = twin.as_ref()?;
        // If it is not known, another doubt reports that.
        let ratio = known(Some(ratio.ratio()))?;
        let relation =
            statistics::relation(&ratio, *differs, Margins { tie: TIE_MARGIN, offset: 0.0 });
        matches!(relation, Relation::Cheaper | Relation::Costlier).then(|| {
            let text = format!(
                "{original} and its twin differ by a ratio of {:.3} [{:.3} to {:.3}], although \
                 they are the same program: something other than the contenders changes the figures, \
                 and smaller differences are not significant; repeat the race with another seed",
                ratio.mean, ratio.low, ratio.high
            );
            (field.load.to_string(), text)
        })
    });
    at_loads(remarks)
}

fn sources(fields: &[Field]) -> Vec<String> {
    let mut doubts = Vec::new();
    let observed = || fields.iter().flat_map(|f| f.contenders.iter().map(move |o| (f.load, o)));
    let names: BTreeSet<&str> = observed().flat_map(|(_, o)| o.sources.iter().copied()).collect();
    if names.len() > 1 {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        doubts.push(format!(
            "CPU time was read from different sources ({names}), which may disagree; \
             see each round's source in rounds.jsonl"
        ));
    }
    let apart: Vec<String> = observed()
        .filter(|(_, o)| {
            o.server_busy.unwrap_or(0.0) * o.window_s * f64::from(o.cpus.0) >= SPLIT_FROM_S
        })
        .filter_map(|(load, o)| Some((load, &o.name, o.split_over_cpu?)))
        .filter(|(_, _, split)| (split - 1.0).abs() > SPLIT)
        .map(|(load, name, split)| format!("{name} at {load} ({:+.0}%)", (split - 1.0) * 100.0))
        .collect();
    if !apart.is_empty() {
        doubts.push(format!(
            "user and system time, sampled by tick, do not add up to the CPU time of {}; \
             the cost uses the CPU time, which is exact: do not trust the split",
            apart.join(", ")
        ));
    }
    doubts
}

/// Remarks on contenders that void no figure, merged over all contenders with the same remark.
fn remarks(asked: &Asked, fields: &[Field]) -> Vec<String> {
    let remarks = asked.contenders.iter().filter_map(|name| {
        let each = || fields.iter().filter_map(|field| field.of(name));
        let starts: u32 = each().filter_map(|o| Some(o.remark.as_ref()?.0)).sum();
        let (_, first) = each().find_map(|o| o.remark.as_ref())?;
        let finished: u32 = each().map(|o| o.finished).sum();
        // The remark starts with the name.
        let what = first.strip_prefix(name.as_str()).map_or(first.as_str(), str::trim_start);
        let text = format!("in {starts} of {finished} starts: {what}; the figures remain valid");
        Some((name.clone(), text))
    });
    let sentence = |(names, text): (Vec<String>, String)| format!("{} {text}", names.join(", "));
    alike(remarks).into_iter().map(sentence).collect()
}

fn no_null_server(asked: &Asked, fields: &[Field]) -> Option<String> {
    // An echo server is no lower bound for a workload that computes.
    if asked.workload == "hash" {
        return None;
    }
    let raced = |f: &Field| f.of(NULL).is_some_and(|o| o.finished > 0);
    (!fields.iter().any(raced)).then(|| {
        let remedy = match asked.contenders.iter().any(|name| name == NULL) {
            true => String::new(),
            false => format!("; if the workload has one, add the contender `{NULL}`"),
        };
        format!(
            "the null server finished no round, so only the load's CPU use (it counts as busy from \
             {:.2}) shows that the load was not the limit{remedy}",
            verdict::BUSY
        )
    })
}
