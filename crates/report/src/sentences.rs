//! The texts under a table: the reasons of the verdicts, notes on columns, and the result.

use crate::{
    columns::{MEMORY_FROM, word},
    latency_ratios, numbers,
    table::{Note, visible},
    then,
    why::{together, why},
};
use regatta_record::{
    Arrivals, Cell, Figure, KernelMemorySource, Kind, LoadShape, Percentile, Relation, Summary,
    rounds_in_words,
};

/// The notes under a table: the reasons of the verdicts that void a figure or report an overload, one
/// line for each kind of verdict whose reason is the same for all, the rounds that would decide more,
/// historic results, and explanations of columns.
pub fn notes(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> Vec<Note> {
    let voided: Vec<&Cell> = cells
        .iter()
        .copied()
        .filter(|c| match c.verdict.kind {
            Kind::CostOnly => false,
            Kind::Overloaded => true,
            // The note `beside` explains it for all of them.
            Kind::AtAskedRate if load.beside.is_some() => c.verdict.void != [Figure::Cost],
            _ => !c.verdict.void.is_empty(),
        })
        .collect();
    let mut notes = why(&voided);
    for (kind, because) in [
        (Kind::CoBound, "server and load were both busy, so the rate is a lower bound (≥)"),
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
        let of_kind = cells.iter().filter(|c| c.verdict.kind == kind).filter(is_alike);
        let names: Vec<String> = of_kind.map(|c| visible(&c.contender)).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            notes.push(Note { names, kind: kind.name(), because: because.to_owned(), bad: false });
        }
    }
    notes.extend(rounds_needed(summary, cells));
    notes.extend(latency_of(summary, cells));
    notes.extend(open_loop(load, cells));
    notes.extend(latency_ratios::notes(summary, load));
    notes.extend(one_core(summary, load, cells));
    notes.extend(counted(load, cells));
    notes.extend(beside(load, cells));
    notes.extend(then::then(summary, load, cells));
    notes.extend(kernel_memory(load, cells));
    notes
}

/// How many more rounds would decide whether a cost differs from the baseline's, where that is open.
fn rounds_needed(summary: &Summary, cells: &[&Cell]) -> Vec<Note> {
    let baseline = visible(&summary.asked.baseline);
    let remark = |c: &&Cell| {
        let words = rounds_in_words(c.rounds_to_decide?, None, summary.pass_s);
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

/// When the latency of an open loop starts, and what causes its parts.
fn open_loop(load: &LoadShape, cells: &[&Cell]) -> Option<Note> {
    let shown = cells.iter().any(|c| c.open_loop.is_some());
    let arrivals = match load.drive.arrivals()? {
        Arrivals::Poisson => "Poisson arrivals",
        Arrivals::Constant => "evenly spaced",
    };
    shown.then(|| Note {
        names: "p50, p99".to_owned(),
        kind: "open loop",
        because: format!(
            "{arrivals}; latency starts when each request was due. The load causes the lag, the \
             server the rest; unsent requests found no free connection"
        ),
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
        names: "wall ms/req".to_owned(),
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
        names: "large".to_owned(),
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
    let shown =
        load.open() >= MEMORY_FROM && cells.iter().any(|c| c.kernel_memory_source == both_ends);
    shown.then(|| Note {
        names: "kernel/conn".to_owned(),
        kind: "memory",
        because:
            "for both ends of each connection, because the kernel counts its objects for the whole \
             system; changes by other programs are included"
                .to_owned(),
        bad: false,
    })
}

/// The contenders whose small requests wait least and most beside the large ones.
fn fairness(contenders: &[&Cell]) -> String {
    let valid = |c: &&Cell| {
        let p99 = c.percentile(Percentile::P99).filter(|_| !c.verdict.voids(Figure::Latency))?;
        Some((visible(&c.contender), p99.ns))
    };
    let all: Vec<(String, f64)> = contenders.iter().filter_map(valid).collect();
    let text = |(name, ns): &(String, f64)| format!("{name} with a p99 of {}", numbers::time(*ns));
    match (all.first(), all.last()) {
        (Some(first), Some(last)) if all.len() > 1 => format!(
            "small requests wait least on {}, and most on {}: {} times as long",
            text(first),
            text(last),
            numbers::three_digits(last.1 / first.1)
        ),
        (Some(only), _) => format!("only {} has valid latencies here", text(only)),
        _ => "no contender has valid latencies here".to_owned(),
    }
}

/// The result in one sentence: the cheapest contender, those tied with the baseline, those possibly as
/// cheap, and the most expensive. Beside another load, the latencies of the small requests.
pub fn result(summary: &Summary, load: &LoadShape, contenders: &[&Cell]) -> String {
    if load.beside.is_some() {
        return fairness(contenders);
    }
    let ranked: Vec<&&Cell> = contenders.iter().filter(|c| c.band.is_some()).collect();
    let Some(cheapest) = ranked.first() else {
        return "no contender has a valid cost here".to_owned();
    };
    if ranked.len() == 1 {
        let name = visible(&cheapest.contender);
        return format!(
            "only {name} has a valid cost here, so there is nothing to compare it with"
        );
    }
    let baseline = visible(&summary.asked.baseline);
    let against = |c: &Cell| match (c.relation, c.ratio_to_baseline) {
        (Some(Relation::Cheaper | Relation::Costlier), Some(e)) => Some(numbers::ratio(&e)),
        _ => None,
    };
    let names = |wanted: &dyn Fn(&Cell) -> bool| -> String {
        let names: Vec<_> =
            ranked.iter().filter(|c| wanted(c)).map(|c| visible(&c.contender)).collect();
        names.join(", ")
    };
    let mut parts = Vec::new();

    let cost =
        against(cheapest).map_or_else(String::new, |r| format!(" at {r} of {baseline}'s cost"));
    parts.push(format!("cheapest: {}{cost}", visible(&cheapest.contender)));
    let is_base = cheapest.contender == summary.asked.baseline;
    let tied = names(&|c| c.relation == Some(Relation::Tied));
    if !tied.is_empty() {
        let subject = if is_base { String::new() } else { format!("{baseline} is ") };
        parts.push(format!("{subject}tied with {tied}"));
    }
    let possibly = names(&|c| {
        c.contender != cheapest.contender
            && c.band.is_some_and(|b| b.best == 1)
            && c.relation != Some(Relation::Costlier)
            && !(is_base && c.relation == Some(Relation::Tied))
            && (c.relation != Some(Relation::Baseline) || tied.is_empty())
    });
    if !possibly.is_empty() {
        parts.push(format!("possibly as cheap: {possibly}"));
    }
    if let Some((costliest, ratio)) = ranked.last().and_then(|c| Some((c, against(c)?)))
        && costliest.contender != cheapest.contender
        && costliest.relation == Some(Relation::Costlier)
    {
        let name = visible(&costliest.contender);
        parts.push(format!("{name} costs {ratio} as much as {baseline}"));
    }
    parts.join("; ")
}
