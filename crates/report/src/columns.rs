//! The columns of a load's table: which ones this load has, and their contents.

use crate::{
    numbers::{self, NONE},
    table::{Column, Text, Tone, verdict_tone, visible},
};
use regatta_record::{
    Cell, Estimate, Figure, Kind, LoadShape, NULL, OpenLoopFigures, Percentile, Relation,
    ShownPercentile, Summary, Unknown,
};

/// Minimum number of connections at which memory per connection is shown. With fewer, other changes of
/// the program's memory outweigh it.
pub const MEMORY_FROM: u32 = 100;

/// A column and its text for each contender.
pub struct Field<'a> {
    /// The column.
    pub column: Column,
    /// Its text.
    pub text: Box<dyn Fn(&Cell) -> Text + 'a>,
}

/// The columns of `load`, whose cells are `cells`.
pub fn fields<'a>(summary: &'a Summary, load: &LoadShape, cells: &[&Cell]) -> Vec<Field<'a>> {
    let mut fields = vec![
        field("contender", 0, |c| plain(visible(&c.contender))).left(),
        cost(cells, &visible(per(summary))),
        field(&visible(&format!("vs {}", summary.asked.baseline)), 1, ratio),
        field("", 2, meaning).left(),
        field("band", 4, band),
    ];
    let then = cells.iter().any(|c| c.then.is_some());
    if load.drive.burst().is_some() {
        // The main figure of a burst is the time of an instance.
        (fields[2].column.drop_rank, fields[3].column.drop_rank, fields[4].column.drop_rank) =
            (4, 4, 5);
        fields.push(instance(cells, then));
        fields.extend(then.then(self::then));
        fields.push(field("slowest", 6, slowest));
    } else if !summary.asked.cpus.are_shared(load) {
        fields.push(match load.drive.rate() {
            None => rate(cells, then),
            // At a rate, it adds little to the verdict.
            Some(_) => rate(cells, false).brief().drop_rank(8),
        });
        fields.extend(then.then(self::then));
        if load.requests.is_some() {
            fields.push(ms_per_request().brief());
        }
        let (p50, p99, large) = if load.beside.is_some() {
            // There is no cost, ratio or band. The main figure is how long the small requests wait.
            fields.drain(1..5);
            (2, 1, Some(beside(cells)))
        } else {
            (7, 5, None)
        };
        fields.push(field("p50", p50, |c| percentile(c, Percentile::P50)).brief());
        fields.push(field("p99", p99, |c| percentile(c, Percentile::P99)).brief());
        fields.extend(large);
        if cells.iter().any(|c| c.open_loop.is_some()) {
            fields.push(field("lag p99", 6, |c| of_open_loop(c, lag)));
            fields.push(field("unsent", 6, |c| of_open_loop(c, unsent)));
        }
    }
    fields.push(field("memory", 9, |c| {
        figure(c, Figure::Memory, c.memory_bytes.map(numbers::memory))
    }));
    let (user, kernel) = match load.idle {
        0 => (8, 8),
        // The columns that would be dropped instead do not exist here.
        _ if load.beside.is_some() => (8, 8),
        // The main figure of silent connections is their memory.
        _ => {
            (fields[2].column.drop_rank, fields[3].column.drop_rank, fields[4].column.drop_rank) =
                (3, 4, 5);
            (1, 2)
        }
    };
    let many = load.open() >= MEMORY_FROM;
    if many && cells.iter().any(|c| c.user_bytes_per_connection.is_some()) {
        fields.push(field("user/conn", user, |c| memory(c, c.user_bytes_per_connection)));
    }
    if many && cells.iter().any(|c| c.kernel_bytes_per_connection.is_some()) {
        fields.push(field("kernel/conn", kernel, |c| memory(c, c.kernel_bytes_per_connection)));
    }
    fields.push(field(&visible(&format!("switches/{}", per(summary))), 10, |c| {
        figure(c, Figure::Cost, c.switches_per_request.map(numbers::three_digits))
    }));
    fields.push(field("lines", 11, move |c| {
        let entry = summary.asked.entries.iter().find(|e| e.name == c.contender);
        let lines = entry.and_then(|e| e.lines_of_code);
        lines.map_or_else(none, |n| plain(numbers::grouped(n.into())))
    }));
    fields.push(
        field("verdict", 3, |c| Text {
            text: c.verdict.kind.name().to_owned(),
            tone: verdict_tone(c),
        })
        .left(),
    );
    fields
}

fn field<'a>(title: &str, drop_rank: u8, text: impl Fn(&Cell) -> Text + 'a) -> Field<'a> {
    let column = Column { title: title.to_owned(), right: true, drop_rank, brief: false };
    Field { column, text: Box::new(text) }
}

impl Field<'_> {
    fn left(mut self) -> Self {
        self.column.right = false;
        self
    }

    fn drop_rank(mut self, drop_rank: u8) -> Self {
        self.column.drop_rank = drop_rank;
        self
    }

    fn brief(mut self) -> Self {
        self.column.brief = true;
        self
    }
}

/// A text in plain tone.
pub fn plain(text: String) -> Text {
    Text { text, tone: Tone::Plain }
}

/// The text of a missing value.
pub fn none() -> Text {
    Text { text: NONE.to_owned(), tone: Tone::Void }
}

/// A figure; in parentheses if the verdict voids it.
pub fn figure(cell: &Cell, figure: Figure, text: Option<String>) -> Text {
    match text {
        None => none(),
        Some(text) if cell.verdict.voids(figure) => {
            Text { text: format!("({text})"), tone: Tone::Void }
        }
        Some(text) => plain(text),
    }
}

/// The text of a figure that was measured, but whose interval is too wide to be meaningful.
pub const NOT_KNOWN: &str = "not known";

/// A figure of a cell, or [`NOT_KNOWN`]; in parentheses if the verdict voids it.
fn known_figure(cell: &Cell, void: Figure, unknown: Unknown, text: Option<String>) -> Text {
    match text {
        None if cell.is_unknown(unknown) => not_known(),
        text => figure(cell, void, text),
    }
}

/// The text of a figure that was measured but is not known.
pub fn not_known() -> Text {
    Text { text: NOT_KNOWN.to_owned(), tone: Tone::Void }
}

/// The operation that costs are per, in the short form of column titles.
pub fn per(summary: &Summary) -> &str {
    let operation = &summary.asked.cost_per;
    if operation.is_request() { "req" } else { &operation.one }
}

fn cost(cells: &[&Cell], per: &str) -> Field<'static> {
    let unit = numbers::cost_unit(means(cells, |c| c.cost_ns_per_request));
    field(&format!("{}/{per}", unit.name), 0, move |c| {
        let text = c.cost_ns_per_request.map(|e| numbers::estimate(&e, unit.size));
        known_figure(c, Figure::Cost, Unknown::Cost, text)
    })
}

fn ratio(cell: &Cell) -> Text {
    match cell.relation {
        Some(Relation::Baseline) => plain("1".to_owned()),
        _ => {
            let text = cell.ratio_to_baseline.map(|e| numbers::ratio(&e));
            known_figure(cell, Figure::Cost, Unknown::Ratio, text)
        }
    }
}

fn band(cell: &Cell) -> Text {
    cell.band.map_or_else(none, |b| {
        plain(match b.best == b.worst {
            true => b.best.to_string(),
            false => format!("{}–{}", b.best, b.worst),
        })
    })
}

/// The rate. If a historic figure is beside it (`then`), its title contains `now` and it is kept
/// longer.
fn rate(cells: &[&Cell], then: bool) -> Field<'static> {
    let unit = numbers::rate_unit(means(cells, |c| c.rate_per_s));
    let (now, drop_rank) = if then { (" now", 2) } else { ("", 6) };
    field(&format!("{}{now}", unit.name), drop_rank, move |c| {
        let lower_bound = if c.verdict.is(Kind::CoBound) { "≥ " } else { "" };
        let text = c.rate_per_s;
        let text = text.map(|e| format!("{lower_bound}{}", numbers::estimate(&e, unit.size)));
        known_figure(c, Figure::Rate, Unknown::Rate, text)
    })
}

/// Total time divided by the number of requests, with connections in parallel.
fn ms_per_request() -> Field<'static> {
    field("wall ms/req", 2, |c| {
        let upper_bound = if c.verdict.is(Kind::CoBound) { "≤ " } else { "" };
        let text = c.ms_per_request.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, 1.0)));
        known_figure(c, Figure::Rate, Unknown::MsPerRequest, text)
    })
}

/// The rate of the other load beside this one.
fn beside(cells: &[&Cell]) -> Field<'static> {
    let unit = numbers::rate_unit(means(cells, |c| c.beside_per_s));
    field(&format!("large {}", unit.name), 2, move |c| {
        let text = c.beside_per_s.map(|e| numbers::estimate(&e, unit.size));
        known_figure(c, Figure::Latency, Unknown::Beside, text)
    })
}

fn instance(cells: &[&Cell], then: bool) -> Field<'static> {
    let unit = numbers::seconds_unit(means(cells, |c| c.instance_s));
    let now = if then { " now" } else { "" };
    field(&format!("instance{now}, {}", unit.name), 1, move |c| {
        let upper_bound = if c.verdict.is(Kind::CoBound) { "≤ " } else { "" };
        let text = c.instance_s;
        let text = text.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, unit.size)));
        known_figure(c, Figure::Rate, Unknown::Instance, text)
    })
}

fn then() -> Field<'static> {
    field("then", 2, |c| c.then.as_deref().map_or_else(none, |text| plain(visible(text))))
}

fn slowest(cell: &Cell) -> Text {
    figure(cell, Figure::Rate, cell.slowest_instance_s.map(|s| numbers::time(s * 1e9)))
}

/// A percentile with its interval, if it has one. `is_unknown`: it was measured but is not known.
pub fn latency(cell: &Cell, shown: Option<ShownPercentile>, is_unknown: bool) -> Text {
    match shown.as_ref().map(numbers::percentile) {
        None if is_unknown => not_known(),
        text => figure(cell, Figure::Latency, text),
    }
}

fn percentile(cell: &Cell, percentile: Percentile) -> Text {
    let is_unknown = cell.is_unknown(Unknown::Latency(percentile));
    latency(cell, cell.percentile(percentile), is_unknown)
}

fn of_open_loop(cell: &Cell, text: fn(&OpenLoopFigures) -> Option<String>) -> Text {
    // These figures describe the load itself, so its lateness does not void them.
    cell.open_loop.as_ref().and_then(text).map_or_else(none, plain)
}

fn lag(open: &OpenLoopFigures) -> Option<String> {
    open.send_lag_ns.p99.map(|ns| numbers::time(ns as f64))
}

fn unsent(open: &OpenLoopFigures) -> Option<String> {
    let share = || numbers::percent(open.unsent as f64 / open.due as f64);
    (open.due > 0).then(|| if open.unsent == 0 { "0".to_owned() } else { share() })
}

/// Memory per connection. Measured growth can be negative if other changes outweigh it.
fn memory(cell: &Cell, bytes: Option<f64>) -> Text {
    let sign = |b: f64| if b < 0.0 { "-" } else { "" };
    let text = |b: f64| format!("{}{}", sign(b), numbers::memory(b.abs().round() as u64));
    figure(cell, Figure::Memory, bytes.map(text))
}

fn means(cells: &[&Cell], of: impl Fn(&Cell) -> Option<Estimate>) -> impl Iterator<Item = f64> {
    cells.iter().filter_map(move |c| Some(of(c)?.mean))
}

/// The meaning of a ratio, in a word. If the difference is inconclusive, half the width of the interval.
fn meaning(cell: &Cell) -> Text {
    let toned = |text: &str, tone| Text { text: text.to_owned(), tone };
    match (cell.relation, cell.ratio_to_baseline) {
        (Some(Relation::Inconclusive), Some(e)) => {
            toned(&format!("±{}?", numbers::percent((e.high / e.low).sqrt() - 1.0)), Tone::Void)
        }
        (Some(relation), _) => {
            let tone = match relation {
                Relation::Cheaper => Tone::Good,
                Relation::Costlier => Tone::Warn,
                _ => Tone::Plain,
            };
            toned(word(relation), tone)
        }
        _ if cell.contender == NULL => toned("floor", Tone::Void),
        _ => toned("", Tone::Plain),
    }
}

/// The name of a relation.
pub fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Baseline => "baseline",
        Relation::Tied => "tied",
        Relation::Cheaper => "cheaper",
        Relation::Costlier => "costlier",
        Relation::Inconclusive => "inconclusive",
    }
}
