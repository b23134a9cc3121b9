//! The texts under a table: the reasons of the verdicts, notes on columns, and the result.

use crate::{
    numbers,
    table::{Note, visible},
    tables::{
        columns::{MEMORY_FROM, word},
        historic_results, latency_ratios,
        why::{UNCLEAR, together, why},
    },
};
use regatta_record::{
    Arrivals, Cell, Doubt, Figure, Finding, KernelMemorySource, Kind, LoadShape, Percentile,
    RatioInState, Relation, Summary, more_in_words,
};
use std::collections::BTreeSet;

/// The kind of the note on ratios that differ between states of the machine.
pub const STATES: &str = "states";
/// The kind of the note on ratios beside other programs.
pub const BESIDE_OTHERS: &str = "beside other programs";

/// The notes under a table: the reasons of the verdicts that void a figure or report an overload, one
/// line for each kind of verdict whose reason is the same for all, the rounds that would decide more,
/// historic results, and explanations of columns.
pub fn notes(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> Vec<Note> {
    let voided: Vec<&Cell> = cells
        .iter()
        .copied()
        .filter(|c| match c.verdict.kind() {
            Kind::CostOnly => false,
            // A doubt about the race explains it for all of them.
            Kind::GeneratorBound if is_load_disturbed(summary) => c.verdict.also().next().is_some(),
            Kind::Overloaded => true,
            // The note `beside` explains it for all of them.
            Kind::AtAskedRate if load.beside.is_some() => c.verdict.void != [Figure::Cost],
            _ => !c.verdict.void.is_empty(),
        })
        .collect();
    let mut notes = why(&voided);
    for (kind, because) in [
        (
            Kind::Idle,
            match load.drive.burst() {
                None => "neither server nor load was busy, so the rate is not the server's limit",
                Some(_) => {
                    "neither server nor load was busy: the time was spent waiting, including \
                     connecting (a connection that finds the accept queue full is retried after 1 s)"
                }
            },
        ),
        (Kind::CostOnly, "server and load had to share CPUs, so only the cost is shown"),
    ] {
        let is_alike = |c: &&&Cell| kind == Kind::CostOnly || c.verdict.void.is_empty();
        let of_kind = cells.iter().filter(|c| c.verdict.kind() == kind).filter(is_alike);
        let names: Vec<String> = of_kind.map(|c| visible(&c.contender)).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            notes.push(Note { names, kind: kind.name(), because: because.to_owned(), bad: false });
        }
    }
    notes.extend(states(cells));
    notes.extend(beside_others(cells));
    notes.extend(undecided(summary, cells));
    if summary.complete && summary.asked.precision.is_none() {
        notes.extend(rounds_needed(summary, cells));
    }
    notes.extend(latency_of(summary, cells));
    notes.extend(open_loop(summary, load, cells));
    notes.extend(latency_ratios::notes(summary, load));
    notes.extend(one_core(summary, load, cells));
    notes.extend(counted(load, cells));
    notes.extend(beside(load, cells));
    notes.extend(historic_results::then(summary, load, cells));
    notes.extend(kernel_memory(load, cells));
    of_all(&mut notes, cells);
    notes
}

/// Whether other programs took the load's CPU from all contenders that take turns.
fn is_load_disturbed(summary: &Summary) -> bool {
    let taken =
        |finding: &Finding| matches!(finding.doubt, Doubt::Disturbed { load_waited: Some(_), .. });
    summary.findings.iter().any(taken)
}

/// Replaces the names of a note that applies to every cell.
fn of_all(notes: &mut [Note], cells: &[&Cell]) {
    let all: BTreeSet<String> = cells.iter().map(|cell| visible(&cell.contender)).collect();
    for note in notes.iter_mut().filter(|note| !note.bad && all.len() > 2) {
        let names: BTreeSet<String> = note.names.split(", ").map(str::to_owned).collect();
        if names == all {
            note.names = "all".to_owned();
        }
    }
}

/// The ratios beside other programs, where they differ.
fn beside_others(cells: &[&Cell]) -> Option<Note> {
    let differing: Vec<(String, String)> = cells
        .iter()
        .filter_map(|c| Some((visible(&c.contender), numbers::ratio(&c.ratio_beside_others?))))
        .map(|(name, ratio)| (name, numbers::brief(&ratio)))
        .collect();
    let names: Vec<&str> = differing.iter().map(|(name, _)| &**name).collect();
    let because = match &differing[..] {
        [] => return None,
        [(_, ratio)] => format!("costs {ratio}; the ratio is that without them"),
        [(name, ratio), others @ ..] => {
            let others: String =
                others.iter().map(|(name, ratio)| format!(", {name} {ratio}")).collect();
            format!("{name} costs {ratio}{others}; each ratio is that without them")
        }
    };
    Some(Note { names: names.join(", "), kind: BESIDE_OTHERS, because, bad: false })
}

/// The ratios in each state of the machine, if they differ, and which of them the table has.
fn states(cells: &[&Cell]) -> Option<Note> {
    let differing: Vec<&&Cell> = cells.iter().filter(|c| c.states_differ).collect();
    let ratio = |of: &RatioInState| numbers::brief(&numbers::ratio(&of.ratio));
    let one = |(nth, cell): (usize, &&&Cell)| {
        let ratios: Vec<String> = cell.by_state.iter().map(ratio).collect();
        let name = match differing.len() {
            1 => String::new(),
            _ => format!("{} ", visible(&cell.contender)),
        };
        match (nth, &ratios[..]) {
            (0, [fast, slow]) => {
                format!(
                    "{name}costs {fast} in the fast state of the machine, {slow} in the slow one"
                )
            }
            (0, _) => {
                let ratios = ratios.join(", ");
                format!("{name}costs {ratios} in the states of the machine, the fastest first")
            }
            (_, _) => format!("{name}{}", ratios.join(", ")),
        }
    };
    let each: Vec<String> = differing.iter().enumerate().map(one).collect();
    let names: Vec<String> = differing.iter().map(|c| visible(&c.contender)).collect();
    let subject = if each.len() == 1 { "the ratio is" } else { "each ratio is" };
    let that = match differing.iter().all(|cell| cell.ratio_is_of_state.unwrap_or(0) == 0) {
        true => "the fastest state",
        false => "the fastest state that is not rare",
    };
    (!each.is_empty()).then(|| Note {
        names: names.join(", "),
        kind: STATES,
        because: format!("{}; {subject} that of {that}", each.join("; ")),
        bad: false,
    })
}

/// Why a cost whose interval excludes the baseline's is not decided.
fn undecided(summary: &Summary, cells: &[&Cell]) -> Vec<Note> {
    let remark = |c: &&Cell| {
        let is_open = c.relation == Some(Relation::Inconclusive);
        let ratio = c.ratio_to_baseline.filter(|_| is_open)?;
        let near_end = if ratio.low > 1.0 { ratio.low } else { 1.0 / ratio.high };
        (near_end > 1.0).then(|| {
            let text = "the interval excludes 1, but with several comparisons that may be chance \
                        (Holm's correction)";
            (visible(&c.contender), text.to_owned())
        })
    };
    let contenders = cells.iter().filter(|c| !summary.asked.is_reference(&c.contender));
    together(UNCLEAR, contenders.filter_map(remark), false).collect()
}

/// How many more rounds would decide whether a cost differs from the baseline's, where that is open.
fn rounds_needed(summary: &Summary, cells: &[&Cell]) -> Vec<Note> {
    let baseline = visible(&summary.asked.baseline);
    let remark = |c: &&Cell| {
        let words = more_in_words(c.starts_to_decide?, c.seconds_to_decide?, c.lives > 0);
        let text = format!("{words} would decide whether the cost differs from that of {baseline}");
        Some((visible(&c.contender), text))
    };
    together("more rounds", cells.iter().filter_map(remark), false).collect()
}

/// The operation to which the latencies apply, if it is not the request.
fn latency_of(summary: &Summary, cells: &[&Cell]) -> Option<Note> {
    let operation = &summary.asked.latency_of;
    let shown = cells.iter().any(|c| c.percentile(Percentile::P50).is_some());
    (shown && !operation.is_request()).then(|| Note {
        names: "p50, p99".to_owned(),
        kind: "latency",
        because: format!(
            "measured per {}, because a server may reply before the work is done; the table of \
             operations has the latency of the replies",
            visible(&operation.one)
        ),
        bad: false,
    })
}

/// When the latency of an open loop starts. The name of a regime says enough.
fn open_loop(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> Option<Note> {
    let shown = summary.asked.regimes().is_none() && cells.iter().any(|c| c.open_loop.is_some());
    let arrivals = match load.drive.arrivals()? {
        Arrivals::Poisson => "Poisson arrivals",
        Arrivals::Constant => "evenly spaced",
    };
    shown.then(|| Note {
        names: "p50, p99".to_owned(),
        kind: "open loop",
        because: format!("{arrivals}; latency starts when each request was due"),
        bad: false,
    })
}

/// The contenders that run the same loop as another one if they have one CPU, and how they compare.
fn one_core(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> Vec<Note> {
    if summary.asked.cpus.of_server(load).len() != 1 {
        return Vec::new();
    }
    let alike = |name: &str| {
        let entry = summary.asked.entries.iter().find(|e| e.name == name)?;
        entry.one_core_as.clone()
    };
    let there = |name: &str| cells.iter().any(|c| c.contender == name);
    let mut originals: Vec<String> = cells.iter().filter_map(|c| alike(&c.contender)).collect();
    originals.sort();
    originals.dedup();
    originals.retain(|original| there(original));
    let note = |original: &String| {
        let same = cells.iter().filter(|c| alike(&c.contender).as_ref() == Some(original));
        let same: Vec<&&Cell> = same.collect();
        let measured = |c: &&&Cell| {
            let (relation, ratio) = (c.relation?, c.ratio_to_baseline?);
            let (name, word) = (visible(&c.contender), word(relation));
            Some(format!("{name} {word} ({})", numbers::ratio(&ratio)))
        };
        // Ratios exist only to the baseline.
        let measured: Vec<String> = match *original == summary.asked.baseline {
            true => same.iter().filter_map(measured).collect(),
            false => Vec::new(),
        };
        let names: Vec<String> = same.iter().map(|c| visible(&c.contender)).collect();
        let mut because = format!("the same loop as {} on one core", visible(original));
        if !measured.is_empty() {
            because = format!("{because}; measured: {}", measured.join(", "));
        }
        Note { names: names.join(", "), kind: "one core", because, bad: false }
    };
    originals.iter().map(note).collect()
}

/// How the time per request of a counted load is computed.
fn counted(load: &LoadShape, cells: &[&Cell]) -> Option<Note> {
    let shown = cells.iter().any(|c| c.ms_per_request.is_some());
    load.requests.filter(|_| shown).map(|requests| Note {
        names: "wall time".to_owned(),
        kind: "counted",
        because: format!(
            "{requests} requests, including connecting; total time divided by their number, with {} \
             connections in parallel",
            load.connections
        ),
        bad: false,
    })
}

/// Which requests the latencies belong to, and the other load of the server.
fn beside(load: &LoadShape, cells: &[&Cell]) -> Option<Note> {
    let beside = load.beside.filter(|_| cells.iter().any(|c| c.beside_per_s.is_some()))?;
    Some(Note {
        names: "large requests".to_owned(),
        kind: "fairness",
        because: format!(
            "{} requests with n={} were always in flight beside these. p50 and p99 are of the small \
             requests, which wait for the large ones if one request blocks all. There is no cost, \
             because the server worked on both",
            beside.connections, beside.n
        ),
        bad: false,
    })
}

fn kernel_memory(load: &LoadShape, cells: &[&Cell]) -> Option<Note> {
    let both_ends = Some(KernelMemorySource::BothEnds);
    let shown = load.max_open_connections() >= MEMORY_FROM
        && cells.iter().any(|c| c.kernel_memory_source == both_ends);
    shown.then(|| Note {
        names: "kernel".to_owned(),
        kind: "memory",
        because:
            "for both ends of each connection, because the kernel counts its objects for the whole \
             system; changes by other programs are included"
                .to_owned(),
        bad: false,
    })
}
