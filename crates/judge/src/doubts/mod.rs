//! Doubts about a race: properties that may mislead its reader. Each is one sentence with advice,
//! printed beside the figures.

mod addresses;
mod behind;
mod cells;
mod probe;
mod starts;

use crate::statistics::{
    self, CONFIDENCE, Floor, Margins, geometric, holm, is_noisier, known, known_floor, p_value,
};
use crate::{
    field::{Field, TIE_MARGIN},
    verdict,
};
use regatta_record::{Asked, Cell, Figure, Kind, NULL, Relation, Unknown, alike};
use std::collections::BTreeSet;

/// Minimum number of rounds of a published table (method, rule 2).
pub const ROUNDS: u32 = 5;
/// Noise floor above which the machine itself is reported.
pub const NOISE_FLOOR: f64 = 0.05;
/// Maximum difference between user + system time (sampled by tick) and CPU time, as a fraction.
pub const SPLIT: f64 = 0.10;
/// CPU time in seconds from which the sampled split is compared.
const SPLIT_FROM_S: f64 = 1.0;

/// All doubts about a race, the most serious first. `as_read` is the noise floor of unadjusted
/// costs.
pub fn doubts(
    asked: &Asked,
    fields: &[Field],
    cells: &[Cell],
    noise_floor: Option<f64>,
    twin_ratios: &[Vec<f64>],
    as_read: Floor,
) -> Vec<String> {
    let mut doubts = Vec::new();
    doubts.extend(incomplete(asked, fields));
    doubts.extend(few_rounds(asked));
    doubts.extend(asked.left_out.iter().map(|load| format!("left out: {load}")));
    doubts.extend(baseline_without_cost(asked, cells));
    doubts.extend(asked.doubts_of_running());
    doubts.extend(asked.doubts_of_contents(cells));
    doubts.extend(shared_cpus(asked));
    doubts.extend(shared_cores(asked));
    doubts.extend(noise(asked, fields, noise_floor, Floor::of(twin_ratios)));
    doubts.extend(twin_differs(asked, fields, twin_ratios));
    doubts.extend(noisier_loads(asked, fields, twin_ratios));
    doubts.extend(starts::uneven(fields));
    doubts.extend(addresses::favours(fields));
    doubts.extend(behind::left_work(fields));
    doubts.extend(probe::left_behind(asked, fields));
    doubts.extend(probe::changed_relations(asked, fields, cells, as_read));
    doubts.extend(sources(fields));
    doubts.extend(cells::unseen(asked, fields));
    doubts.extend(no_null_server(asked, fields));
    doubts.extend(remarks(asked, fields));
    doubts.extend(cells::errors_and_gaps(fields));
    doubts.extend(fields.iter().filter_map(cells::little));
    doubts.extend(cells::arrivals(fields));
    doubts.extend(cells::passing(fields));
    doubts.extend(cells::warm_ups(fields));
    doubts
}

fn incomplete(asked: &Asked, fields: &[Field]) -> Option<String> {
    if asked.precision.is_some() {
        return (!fields.iter().all(|field| field.is_complete(asked))).then(|| {
            "the race is incomplete: it needs more rounds for the requested precision; `regatta \
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
    let raced = |c: &&Cell| c.contender == asked.baseline && c.verdict.kind != Kind::Skipped;
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
                c.verdict.kind.name()
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
    (!shared.is_empty()).then(|| {
        format!(
            "server and load share CPU {}: they take time from each other, so trust costs only; \
             separate them with --server-cpus and --load-cpus",
            shared.join(", ")
        )
    })
}

fn shared_cores(asked: &Asked) -> Option<String> {
    let shared = asked.cpus.shared_cores(&asked.setup.cores);
    let list = |cpus: &&[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ");
    let shared: Vec<String> = shared.iter().map(list).collect();
    (!shared.is_empty()).then(|| {
        format!(
            "server and load share a physical core (CPUs {}): each takes time from the other without \
             waiting for it, so costs are too high and differ with the load; give each its own cores \
             with --server-cpus and --load-cpus",
            shared.join("; ")
        )
    })
}

fn noise(
    asked: &Asked,
    fields: &[Field],
    noise_floor: Option<f64>,
    parts: Floor,
) -> Option<String> {
    if asked.loads.iter().all(|load| load.beside.is_some()) {
        // Without any cost there is no noise of costs.
        return None;
    }
    let Some(floor) = noise_floor else {
        return Some(match &asked.twin_of {
            None => "no contender was entered twice, so the noise floor is not known and small \
                     differences may be noise; enter a twin"
                .to_owned(),
            Some(original) => {
                let twin = asked.twin().unwrap_or_default();
                let both = [original, &twin];
                // More rounds would be void or fail too.
                let why = both.iter().find_map(|name| {
                    let why = fields.iter().map(|field| field.why_no_cost(name));
                    let why: Option<Vec<String>> = why.collect();
                    Some(format!("{name} {}", why?.into_iter().next()?))
                });
                match why.filter(|_| asked.rounds > 1) {
                    Some(why) => format!("the noise floor is not known: {why}"),
                    None => format!(
                        "the noise floor is not known: {original} and its twin have fewer than 2 \
                         rounds in common; run more rounds"
                    ),
                }
            }
        });
    };
    if known_floor(noise_floor).is_none() {
        return Some(format!(
            "the noise floor is not known: {} and its twin, the same program, differ by more than a \
             factor of ten, so no difference can be shown; stop other programs, run more rounds or \
             use longer windows",
            asked.twin_of.as_deref().unwrap_or("a contender")
        ));
    }
    let remedy = match parts.lasting.exp_m1() {
        lasting if lasting > NOISE_FLOOR => format!(
            "more rounds do not lower it, because two starts of the same program differ by {:.0}% \
             permanently; stop other programs or race on other CPUs",
            lasting * 100.0
        ),
        _ => "stop other programs, run more rounds or use longer windows".to_owned(),
    };
    (floor > NOISE_FLOOR).then(|| {
        format!(
            "the noise floor is ±{:.0}%: smaller differences cannot be shown on this machine; {remedy}",
            floor * 100.0
        )
    })
}

/// Reports a twin that differs from its original. It is judged like any other contender, with
/// Holm's correction over the loads, but without the noise floor, which includes the very
/// difference in question.
fn twin_differs(asked: &Asked, fields: &[Field], twin_ratios: &[Vec<f64>]) -> Vec<String> {
    let (Some(original), Some(twin)) = (&asked.twin_of, asked.twin()) else { return Vec::new() };
    let p_values: Vec<f64> = twin_ratios.iter().map(|d| p_value(d).unwrap_or(1.0)).collect();
    let differs = holm(&p_values, 1.0 - CONFIDENCE);
    let remarks = with_twins(fields, original, &twin).zip(twin_ratios).zip(differs).filter_map(
        |((field, log_ratios), differs)| {
            // If it is not known, the noise floor is not known either; another doubt reports that.
            let ratio = known(geometric(log_ratios, asked.seed))?;
            let relation =
                statistics::relation(&ratio, differs, Margins { tie: TIE_MARGIN, floor: 0.0 });
            matches!(relation, Relation::Cheaper | Relation::Costlier).then(|| {
                let text = format!(
                    "{original} and its twin differ by a ratio of {:.3} [{:.3} to {:.3}], although \
                     they are the same program: something other than the contenders changes the figures; repeat \
                     the race with another seed",
                    ratio.mean, ratio.low, ratio.high
                );
                (field.load.to_string(), text)
            })
        },
    );
    at_loads(remarks)
}

/// The loads of `twin_ratios`.
fn with_twins<'a>(
    fields: &'a [Field],
    original: &str,
    twin: &str,
) -> impl Iterator<Item = &'a Field> {
    fields.iter().filter(move |f| f.cost(original).is_some() && f.cost(twin).is_some())
}

/// Reports loads that are noisier than the others. The noise floor is pooled over the loads, so the
/// floor of such a load is printed beside it.
fn noisier_loads(asked: &Asked, fields: &[Field], twin_ratios: &[Vec<f64>]) -> Vec<String> {
    let (Some(original), Some(twin)) = (&asked.twin_of, asked.twin()) else { return Vec::new() };
    let loads = with_twins(fields, original, &twin);
    let doubt = |(nth, field): (usize, &Field)| {
        let others: Vec<f64> = [&twin_ratios[..nth], &twin_ratios[nth + 1..]].concat().concat();
        let floor = statistics::noise_floor(&twin_ratios[nth..=nth])?;
        (floor > TIE_MARGIN && is_noisier(&twin_ratios[nth], &others)).then(|| {
            let is = match known_floor(Some(floor)) {
                Some(floor) => format!("±{:.1}%", floor * 100.0),
                None => "beyond a factor of ten".to_owned(),
            };
            let text = format!(
                "the noise floor is {is}, above that of the other loads: smaller differences are not \
                 significant there"
            );
            (field.load.to_string(), text)
        })
    };
    at_loads(loads.enumerate().filter_map(doubt))
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
        let rounds: u32 = each().filter_map(|o| Some(o.remark.as_ref()?.0)).sum();
        let (_, first) = each().find_map(|o| o.remark.as_ref())?;
        let finished: u32 = each().map(|o| o.finished).sum();
        // The remark starts with the name.
        let what = first.strip_prefix(name.as_str()).map_or(first.as_str(), str::trim_start);
        let text = format!("in {rounds} of {finished} rounds: {what}; the figures remain valid");
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
