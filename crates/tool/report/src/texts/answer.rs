//! The answer of a race: one sentence or two in plain words for each load.

use crate::{numbers, regimes, table::visible};
use regatta_record::{
    Cell, Estimate, Figure, Kind, LoadShape, Percentile, Regimes, Relation, Summary,
};

/// Names in a list; further ones are counted.
const NAMED: usize = 6;
/// Contenders whose ratio is given each; if there are more, the range is given.
const EACH: usize = 6;
/// Half-width of the widest interval up to which ratios are given as numbers, as a fraction.
const NARROW: f64 = 0.05;
/// Maximum length of a reason in characters.
const REASON: usize = 60;

/// The sentence for a load of which no round was run.
pub const NOT_RACED: &str = "Not raced yet.";

/// The answer for one load. Neither text contains control characters.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Answer {
    /// The load, as in the titles of tables: `64 conn`.
    pub load: String,
    /// What the race found at this load, in plain words.
    pub sentence: String,
}

/// The answers, in the order of the loads; a single one for a race in two regimes.
pub fn answer(summary: &Summary) -> Vec<Answer> {
    if let Some(regimes) = summary.asked.regimes() {
        return vec![of_regimes(summary, &regimes)];
    }
    let of = |load: &LoadShape| Answer {
        load: visible(&load.to_string()),
        sentence: sentence(summary, load),
    };
    summary.asked.loads.iter().map(of).collect()
}

/// One sentence for both regimes, then the contenders without a cost.
fn of_regimes(summary: &Summary, regimes: &Regimes) -> Answer {
    let (mut names, mut raced, mut missing) = (Vec::new(), Vec::new(), Vec::<String>::new());
    let mut at_saturation = None;
    for (load, name) in regimes::names(regimes) {
        let cells = contenders(summary, &load);
        if cells.iter().all(|cell| is_due(cell)) {
            continue;
        }
        names.push(name);
        for text in without(&load, &cells) {
            if !missing.contains(&text) {
                missing.push(text);
            }
        }
        if load == regimes.saturation {
            at_saturation = rates(&cells);
        }
        raced.push(cells);
    }
    let both = in_all(&raced);
    let sentence = match &names[..] {
        [] => NOT_RACED.to_owned(),
        names => {
            let mut clauses = costs(summary, &both.iter().collect::<Vec<_>>());
            clauses.extend(at_saturation);
            let names = names.join(" and ");
            format!("{}{}, {}.", names[..1].to_uppercase(), &names[1..], clauses.join("; "))
        }
    };
    let sentences: Vec<String> = std::iter::once(sentence).chain(missing).collect();
    Answer { load: visible(&regimes.saturation.to_string()), sentence: sentences.join(" ") }
}

/// The cells of each contender under several loads as one, with the range of all intervals of its ratio. It is
/// tied or not decided if it is one of these under each load. Otherwise its cost differs under at least one:
/// `Costlier` stands for that, because higher and lower costs are listed alike.
fn in_all(loads: &[Vec<&Cell>]) -> Vec<Cell> {
    let mut all: Vec<Cell> = Vec::new();
    for cell in loads.iter().flatten().filter(|cell| cell.band.is_some()) {
        let Some(known) = all.iter_mut().find(|known| known.contender == cell.contender) else {
            all.push((*cell).clone());
            continue;
        };
        known.ratio_to_baseline =
            known.ratio_to_baseline.zip(cell.ratio_to_baseline).map(|(a, b)| {
                let (low, high) = (a.low.min(b.low), a.high.max(b.high));
                Estimate { mean: (low * high).sqrt(), low, high }
            });
        known.relation = known.relation.zip(cell.relation).map(|(a, b)| match (a, b) {
            (a, b) if a == b => a,
            (Relation::Tied | Relation::Inconclusive, Relation::Tied | Relation::Inconclusive) => {
                Relation::Inconclusive
            }
            _ => Relation::Costlier,
        });
    }
    all
}

/// The cells of contenders, without references and those that are not installed here.
fn contenders<'a>(summary: &'a Summary, load: &LoadShape) -> Vec<&'a Cell> {
    let asked = &summary.asked;
    let is_contender = |name: &str| !asked.is_reference(name) && !asked.is_skipped(name);
    let of_load = summary.cells.iter().filter(|cell| cell.load == *load);
    of_load.filter(|cell| is_contender(&cell.contender)).collect()
}

fn sentence(summary: &Summary, load: &LoadShape) -> String {
    let cells = contenders(summary, load);
    if cells.iter().all(|cell| is_due(cell)) {
        return NOT_RACED.to_owned();
    }
    let is_alone =
        load.beside.is_none() && load.drive.burst().is_none() && summary.asked.loads.len() == 1;
    let mut parts = match load.beside {
        Some(_) => vec![fairness(&cells)],
        None => {
            let clauses = costs(summary, &cells).join("; ");
            let start = if is_alone { "On this machine, " } else { "" };
            let burst = load.drive.burst().and_then(|_| instances(&cells));
            burst.into_iter().chain([format!("{start}{clauses}.")]).collect()
        }
    };
    if load.beside.is_none() && load.compares_latency() {
        parts.extend(latencies(&cells));
    }
    parts.extend(without(load, &cells));
    parts.join(" ")
}

/// Whether none of its rounds was run yet.
fn is_due(cell: &Cell) -> bool {
    cell.verdict.kind() == Kind::Skipped
}

/// What the costs are, in clauses of a sentence: the same as the baseline's, higher or lower, not decided.
fn costs(summary: &Summary, cells: &[&Cell]) -> Vec<String> {
    let baseline = summary.asked.baseline.as_str();
    let ranked: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.band.is_some()).collect();
    let per = match &summary.asked.cost_per {
        operation if operation.is_request() => String::new(),
        operation => format!(" per {}", visible(&operation.one)),
    };
    match &ranked[..] {
        [] => return vec!["no contender has a valid cost".to_owned()],
        [only] => {
            let name = visible(&only.contender);
            return vec![format!(
                "only {name} has a valid cost, so there is nothing to compare it with"
            )];
        }
        _ => {}
    }
    if ranked.iter().all(|cell| cell.contender != baseline) {
        return vec![without_baseline(summary, &ranked)];
    }
    let name = visible(baseline);
    let of = |relations: &[Relation]| -> Vec<(String, Estimate)> {
        let of = ranked.iter().filter(|cell| cell.relation.is_some_and(|r| relations.contains(&r)));
        let of = of.filter_map(|cell| Some((visible(&cell.contender), cell.ratio_to_baseline?)));
        let mut of: Vec<(String, Estimate)> = of.collect();
        of.sort_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
        of
    };
    let mut clauses: Vec<String> = Vec::new();
    let tied = of(&[Relation::Tied]);
    if !tied.is_empty() {
        let costs = if tied.len() == 1 { "costs" } else { "cost" };
        let names = list(tied.iter().map(|(name, _)| name.clone()));
        clauses.push(format!("{names} {costs} the same{per} as {name} (within {})", within(&tied)));
    }
    // After the first clause, ratios need no reference.
    let reference = |clauses: &[String]| match clauses {
        [] => format!(" as much{per} as {name}"),
        _ => String::new(),
    };
    let differing = of(&[Relation::Cheaper, Relation::Costlier]);
    if !differing.is_empty() {
        clauses.push(ratios(&differing, &reference(&clauses)));
    }
    let undecided = of(&[Relation::Inconclusive]);
    if !undecided.is_empty() {
        clauses.push(not_decided(&undecided, &reference(&clauses)));
    }
    let is_wide = |cell: &&&Cell| cell.contender != baseline && cell.ratio_to_baseline.is_none();
    let wide: Vec<String> =
        ranked.iter().filter(is_wide).map(|cell| visible(&cell.contender)).collect();
    if !wide.is_empty() {
        clauses.push(format!("the ratio of {} to {name} is not known", list(wide.into_iter())));
    }
    clauses
}

/// The lowest and the highest rate.
fn rates(cells: &[&Cell]) -> Option<String> {
    let valid = |c: &&Cell| {
        let rate = c.rate_per_s.filter(|_| !c.verdict.voids(Figure::Rate))?.mean;
        let at_least = if c.verdict.is(Kind::CoBound) { "at least " } else { "" };
        Some((rate, format!("{at_least}{} ({})", numbers::rate(rate), visible(&c.contender))))
    };
    let mut all: Vec<(f64, String)> = cells.iter().filter_map(valid).collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    match &all[..] {
        [(_, least), .., (_, most)] => {
            Some(format!("rates at saturation are from {least} to {most}"))
        }
        _ => None,
    }
}

/// The cheapest and the most expensive contender if the baseline has no cost.
fn without_baseline(summary: &Summary, ranked: &[&Cell]) -> String {
    let baseline = visible(&summary.asked.baseline);
    let missing = format!("{baseline}, the baseline, has no valid cost, so there are no ratios");
    let cost = |cell: &&Cell| Some((visible(&cell.contender), cell.cost_ns_per_request?.mean));
    let all: Vec<(String, f64)> = ranked.iter().filter_map(cost).collect();
    let least = all.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = all.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let one = visible(&summary.asked.cost_per.one);
    match (least, most) {
        (Some(least), Some(most)) if all.len() > 1 => format!(
            "{missing}; a {one} costs from {} ({}) to {} ({}) of CPU",
            numbers::time(least.1),
            least.0,
            numbers::time(most.1),
            most.0
        ),
        _ => missing,
    }
}

/// `go costs 1.80×, node 2.40× (within ±1.2%)`; if an interval is wide, the intervals: `go costs 1.7–1.9×,
/// node 2.1–2.6×`. If there are many, those of the cheapest and the most expensive.
fn ratios(of: &[(String, Estimate)], reference: &str) -> String {
    let widest = of.iter().map(|(_, e)| numbers::half_width(e)).fold(0.0, f64::max);
    let (text, within): (fn(&Estimate) -> String, String) = match widest <= NARROW {
        true => (brief, format!(" (within ±{})", percent_up(widest))),
        false => (numbers::ratio_range, String::new()),
    };
    if let [(first, least), .., (last, most)] = of
        && of.len() > EACH
    {
        let (least, most) = (text(least), text(most));
        let n = counted(of, reference);
        return format!("{n} cost from {least} ({first}) to {most} ({last}){reference}{within}");
    }
    let one = |(nth, (name, e)): (usize, &(String, Estimate))| match nth {
        0 => format!("{name} costs {}{reference}", text(e)),
        _ => format!("{name} {}", text(e)),
    };
    of.iter().enumerate().map(one).collect::<Vec<_>>().join(", ") + &within
}

/// `go costs 0.97–1.06×, node 0.9–1.2×: not decided`. If there are many, the range of all.
fn not_decided(of: &[(String, Estimate)], reference: &str) -> String {
    if of.len() > EACH {
        let low = of.iter().map(|(_, e)| e.low).fold(f64::INFINITY, f64::min);
        let high = of.iter().map(|(_, e)| e.high).fold(0.0, f64::max);
        let all = numbers::ratio_range(&Estimate { mean: (low * high).sqrt(), low, high });
        let n = counted(of, reference);
        return format!("{n} cost {all}{reference}: not decided");
    }
    let one = |(nth, (name, e)): (usize, &(String, Estimate))| match nth {
        0 => format!("{name} costs {}{reference}", numbers::ratio_range(e)),
        _ => format!("{name} {}", numbers::ratio_range(e)),
    };
    of.iter().enumerate().map(one).collect::<Vec<_>>().join(", ") + ": not decided"
}

/// `7 others`; in the first clause, which has a reference, `7 contenders`.
fn counted(of: &[(String, Estimate)], reference: &str) -> String {
    format!("{} {}", of.len(), if reference.is_empty() { "others" } else { "contenders" })
}

/// `1.73×`: two decimals are enough, except close to 1.
fn brief(e: &Estimate) -> String {
    let text = numbers::brief(&numbers::ratio(e));
    let fine = text.split_once('.').is_some_and(|(_, decimals)| decimals.chars().count() > 3);
    if fine && (e.mean - 1.0).abs() > 0.02 { format!("{:.2}×", e.mean) } else { text }
}

/// `1.8%`: the largest difference from the baseline that the intervals of all ratios include.
fn within(of: &[(String, Estimate)]) -> String {
    let farthest = |e: &Estimate| (e.high - 1.0).max(1.0 - e.low);
    percent_up(of.iter().map(|(_, e)| farthest(e)).fold(0.0, f64::max))
}

/// A fraction as a percentage, rounded up, so that an interval lies inside.
fn percent_up(fraction: f64) -> String {
    let tenths = (fraction * 1_000.0 - 1e-9).ceil().max(1.0);
    format!("{}%", numbers::short(tenths / 10.0))
}

/// `a, b and c`; further names are counted.
fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    if names.len() > NAMED + 1 {
        let more = names.len() - NAMED;
        names.truncate(NAMED);
        names.push(format!("{more} more"));
    }
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// The contenders whose small requests wait least and most beside the large ones.
fn fairness(cells: &[&Cell]) -> String {
    let (percentile, all) = tail(cells);
    let text = |(name, ns): &(String, f64)| format!("{name} ({percentile} {})", numbers::time(*ns));
    match (all.first(), all.last()) {
        (Some(first), Some(last)) if all.len() > 1 && is_same(first.1, last.1) => format!(
            "Beside large requests, small requests wait equally long on all of them ({percentile} {}).",
            numbers::time(first.1)
        ),
        (Some(first), Some(last)) if all.len() > 1 => format!(
            "Beside large requests, small requests wait least on {}, and most on {}: {} times as long.",
            text(first),
            text(last),
            numbers::three_digits(last.1 / first.1)
        ),
        (Some(only), _) => format!("Only {} has valid latencies here.", text(only)),
        _ => "No contender has valid latencies here.".to_owned(),
    }
}

/// The lowest and the highest percentile at a requested rate.
fn latencies(cells: &[&Cell]) -> Option<String> {
    let (percentile, all) = tail(cells);
    let (least, most) = (all.first()?, all.last()?);
    let [low, high] = [least, most].map(|(_, ns)| numbers::time(*ns));
    match () {
        () if all.len() < 2 => None,
        () if is_same(least.1, most.1) => {
            Some(format!("{percentile} latency is {low} on all of them."))
        }
        () => {
            let (least, most) = (&least.0, &most.0);
            Some(format!("{percentile} latency is from {low} ({least}) to {high} ({most})."))
        }
    }
}

/// Whether two times in nanoseconds are printed in the same way.
fn is_same(a: f64, b: f64) -> bool {
    numbers::time(a) == numbers::time(b)
}

/// The highest percentile, at most the 99th, that most contenders have, and its valid values in
/// nanoseconds, lowest first. Short windows have too few samples for high ones.
fn tail(cells: &[&Cell]) -> (&'static str, Vec<(String, f64)>) {
    let of = |percentile: Percentile| {
        let valid = |c: &&Cell| {
            let shown = c.percentile(percentile).filter(|_| !c.verdict.voids(Figure::Latency))?;
            Some((visible(&c.contender), shown.ns))
        };
        let mut all: Vec<(String, f64)> = cells.iter().filter_map(valid).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        (percentile.name(), all)
    };
    let all = [Percentile::P50, Percentile::P95, Percentile::P99].map(of);
    all.into_iter().max_by_key(|(_, values)| values.len()).expect("there are three")
}

/// The contenders on which an instance of a burst takes least and most time.
fn instances(cells: &[&Cell]) -> Option<String> {
    let valid = |c: &&Cell| {
        let time = c.instance_s.filter(|_| !c.verdict.voids(Figure::Rate))?;
        // If the load was as busy as the server, the server may be faster.
        let at_most = if c.verdict.is(Kind::CoBound) { "at most " } else { "" };
        Some((visible(&c.contender), time.mean, at_most))
    };
    let mut all: Vec<(String, f64, &str)> = cells.iter().filter_map(valid).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let text = |(name, s, at_most): &(String, f64, &str)| {
        format!("{at_most}{} ({name})", numbers::time(s * 1e9))
    };
    match (all.first()?, all.last()?) {
        (first, last) if all.len() > 1 => {
            Some(format!("An instance takes from {} to {}.", text(first), text(last)))
        }
        (only, _) => Some(format!("An instance takes {}.", text(only))),
    }
}

/// The contenders without a figure to compare, with the reason in a few words.
fn without(load: &LoadShape, cells: &[&Cell]) -> Vec<String> {
    let lacks = |cell: &&&Cell| match load.beside {
        Some(_) => cell.verdict.voids(Figure::Latency),
        None => cell.band.is_none(),
    };
    let figure = if load.beside.is_some() { "latency" } else { "cost" };
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for cell in cells.iter().filter(lacks) {
        let (name, reason) = (visible(&cell.contender), reason(cell, figure));
        match groups.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    let sentence = |(reason, names): (String, Vec<String>)| {
        let plural = [("was ", "were "), ("has ", "have ")]
            .into_iter()
            .find_map(|(one, several)| Some(format!("{several}{}", reason.strip_prefix(one)?)));
        let reason = plural.filter(|_| names.len() > 1).unwrap_or(reason);
        let stop = if reason.ends_with('…') { "" } else { "." };
        format!("{} {reason}{stop}", list(names.into_iter()))
    };
    groups.into_iter().map(sentence).collect()
}

/// Why a cell has no `figure` to compare, as the rest of a sentence on one contender.
fn reason(cell: &Cell, figure: &str) -> String {
    let because = || short(&cell.verdict.first().cause.to_string(), &cell.contender);
    match cell.verdict.kind() {
        Kind::Skipped => "was not raced yet".to_owned(),
        Kind::Disqualified => format!("was disqualified: {}", because()),
        Kind::Failed => format!("failed: {}", because()),
        Kind::CannotHold => "cannot hold this load".to_owned(),
        Kind::ServerNotObserved => {
            format!("has no {figure}: some of its processes were not observed")
        }
        Kind::OtherCpus => format!("has no {figure}: it moved itself to other CPUs"),
        Kind::Unstable => format!("has no {figure}: its rate was not steady"),
        _ if cell.rounds < 2 && !cell.verdict.voids(Figure::Cost) => {
            format!("has no {figure} yet: an interval needs 2 rounds")
        }
        kind => format!("has no valid {figure} ({})", kind.name()),
    }
}

/// The first clause of a reason, without the name of its contender.
fn short(because: &str, contender: &str) -> String {
    let named = because.strip_prefix(contender).and_then(|rest| rest.strip_prefix(": "));
    let text = named.unwrap_or(because);
    let end = text.find([';', '\n']).unwrap_or(text.len());
    let clause = visible(text[..end].trim_end_matches('.'));
    match clause.char_indices().nth(REASON) {
        Some((at, _)) => {
            let cut = &clause[..at];
            let words = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
            format!("{}…", words.trim_end_matches([',', ':', ' ']))
        }
        None => clause,
    }
}
