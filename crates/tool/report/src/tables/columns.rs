//! The columns of a load's table: which ones this load has, and their contents.

use crate::{
    numbers::{self, NONE, Unit},
    table::{Column, Text, Tone, verdict_tone, visible},
};
use regatta_record::{
    Asked, Cell, Estimate, Figure, Kind, LoadShape, OpenLoopFigures, Percentile, Relation,
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

/// The names of all columns that a load's table may have, in the order of the table.
pub const NAMES: [&str; 26] = [
    "contender",
    "cost",
    "machine",
    "ratio",
    "bar",
    "result",
    "instance",
    "then",
    "slowest",
    "rate",
    "both",
    "wall",
    "p50",
    "p99",
    "p99.99",
    "max",
    "large",
    "lag",
    "unsent",
    "rank",
    "verdict",
    "memory",
    "user",
    "kernel",
    "switches",
    "lines",
];

/// The columns of `load`, whose cells are `cells`.
pub fn fields<'a>(summary: &'a Summary, load: &LoadShape, cells: &[&Cell]) -> Vec<Field<'a>> {
    let mut fields = vec![field(Column::left("contender"), |c| plain(visible(&c.contender)))];
    let then = cells.iter().any(|c| c.then.is_some());
    let is_burst = load.drive.burst().is_some();
    let is_beside = load.beside.is_some();
    if !is_beside {
        let [cost, ratio, result] = cost_fields(summary, load, cells);
        fields.push(cost);
        fields.extend(machine(summary, cells));
        fields.extend([ratio, result]);
    }
    if is_burst {
        // The main figure of a burst is the time of an instance.
        fields.push(instance(cells, then));
        fields.extend(then.then(self::then));
        fields.push(slowest(cells));
    } else if !summary.asked.cpus.are_shared(load) {
        fields.push(match load.drive.rate() {
            None => rate(cells, then),
            // At a rate, it adds little to the verdict.
            Some(_) => rate(cells, false).rank(8),
        });
        fields.extend(then.then(self::then));
        if load.requests.is_some() {
            fields.push(ms_per_request());
        }
        // Beside another load, the main figure is how long the small requests wait.
        let (p50, p99) = if is_beside { (2, 1) } else { (7, 3) };
        fields.push(percentile(cells, Percentile::P50, "p50", p50));
        fields.push(percentile(cells, Percentile::P99, "p99", p99));
        fields.push(pooled(cells, "p99.99", |c| c.latency_ns.p99_99));
        fields.push(pooled(cells, "max", |c| c.latency_ns.max));
        fields.extend(is_beside.then(|| beside(cells)));
        if cells.iter().any(|c| c.open_loop.is_some()) {
            fields.push(lag(cells));
            if cells.iter().any(|c| c.open_loop.as_ref().is_some_and(|open| open.unsent > 0)) {
                fields.push(field(Column::right("unsent", 8), |c| of_open_loop(c, unsent)));
            }
        }
    }
    if !is_beside {
        fields.push(both_sides(summary, cells));
        fields.push(field(Column::right("rank", 7).on_request(), rank));
    }
    fields.push(verdict(summary, cells));
    fields.extend(memories(load, cells));
    let switches =
        Column::right("switches", 10).unit(&format!("/{}", visible(per(&summary.asked))));
    fields.push(field(switches.on_request(), |c| {
        figure(c, Figure::Cost, c.switches_per_request.map(numbers::three_digits))
    }));
    let lines = Column::right("lines", 11).titled("lines of").unit("code").on_request();
    fields.push(field(lines, move |c| {
        let entry = summary.asked.entries.iter().find(|e| e.name == c.contender);
        let lines = entry.and_then(|e| e.lines_of_code);
        lines.map_or_else(none, |n| plain(numbers::grouped(n.into())))
    }));
    fields
}

/// Cost, ratio to the baseline, and what the ratio means.
fn cost_fields(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> [Field<'static>; 3] {
    let (ratio, result) = match () {
        () if load.drive.burst().is_some() => (4, 4),
        // The main figure of silent connections is their memory.
        () if load.idle > 0 => (3, 4),
        () => (1, 2),
    };
    let unit = numbers::cost_unit(means(cells, |c| c.cost_ns_per_request));
    let per = visible(per(&summary.asked));
    let cost = Column::right("cost", 0).unit(&format!("{}/{per}", unit.name)).brief();
    let cost = field(cost, move |c| {
        let upper_bound = if c.cost_is_upper_bound { "≤ " } else { "" };
        let text = c.cost_ns_per_request;
        let text = text.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, unit.size)));
        known_figure(c, Figure::Cost, Unknown::Cost, text)
    });
    let baseline = visible(&summary.asked.baseline);
    let title = match baseline.chars().count() {
        0..=12 => format!("ratio to {baseline}"),
        _ => "ratio to baseline".to_owned(),
    };
    let column = Column::right("ratio", ratio).titled(&title);
    [cost, field(column, self::ratio), field(Column::left("result").rank(result), meaning)]
}

/// CPU of the contender's whole machine, if it is another one than the load's.
fn machine(summary: &Summary, cells: &[&Cell]) -> Option<Field<'static>> {
    cells.iter().find(|c| c.machine.is_some())?;
    // That of the column beside it.
    let unit = numbers::cost_unit(means(cells, |c| c.cost_ns_per_request));
    let column = Column::right("machine", 3).brief();
    let column = column.unit(&format!("{}/{}", unit.name, visible(per(&summary.asked))));
    Some(field(column, move |c| match c.machine {
        None => none(),
        Some(machine) => match machine.cost_ns_per_request {
            // With one life there is no cost either.
            None if c.cost_ns_per_request.is_some() => not_known(),
            cost => figure(c, Figure::Cost, cost.map(|e| numbers::estimate(&e, unit.size))),
        },
    }))
}

/// CPU of server and load together.
fn both_sides(summary: &Summary, cells: &[&Cell]) -> Field<'static> {
    let unit = numbers::cost_unit(means(cells, |c| c.both_sides_ns_per_request));
    let column = Column::right("both", 7).titled("both sides").brief().on_request();
    let column = column.unit(&format!("{}/{}", unit.name, visible(per(&summary.asked))));
    field(column, move |c| {
        let upper_bound = if c.cost_is_upper_bound { "≤ " } else { "" };
        let text = c.both_sides_ns_per_request;
        let text = text.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, unit.size)));
        figure(c, Figure::Cost, text)
    })
}

/// The verdict. On request, unless a contender has an unusual one.
fn verdict(summary: &Summary, cells: &[&Cell]) -> Field<'static> {
    let ranked = || cells.iter().filter(|c| !summary.asked.is_reference(&c.contender));
    let first = ranked().next().map(|c| c.verdict.kind());
    let differ = ranked().any(|c| Some(c.verdict.kind()) != first);
    let matters = differ && ranked().any(|c| verdict_tone(c) != Tone::Plain);
    let column = Column::left("verdict").rank(5);
    field(if matters { column } else { column.on_request() }, |c| Text {
        text: c.verdict.kind().name().to_owned(),
        tone: verdict_tone(c),
    })
}

/// Memory, and memory per connection if there are many connections.
fn memories(load: &LoadShape, cells: &[&Cell]) -> Vec<Field<'static>> {
    let unit = numbers::memory_unit(cells.iter().filter_map(|c| Some(c.memory_bytes? as f64)));
    let mut fields = vec![field(Column::right("memory", 9).unit(unit.name), move |c| {
        let text = c.memory_bytes.map(|bytes| numbers::three_digits(bytes as f64 / unit.size));
        figure(c, Figure::Memory, text)
    })];
    let (user, kernel) = match load.idle {
        0 => (8, 8),
        // The columns that would be dropped instead do not exist here.
        _ if load.beside.is_some() => (8, 8),
        _ => (1, 2),
    };
    if load.max_open_connections() >= MEMORY_FROM {
        type Of = fn(&Cell) -> Option<f64>;
        let of: [(Column, Of); 2] = [
            (Column::right("user", user), |c| c.user_bytes_per_connection),
            (Column::right("kernel", kernel), |c| c.kernel_bytes_per_connection),
        ];
        for (column, of) in of {
            if cells.iter().any(|c| of(c).is_some()) {
                let sizes = cells.iter().filter_map(|c| Some(of(c)?.abs()));
                let unit = numbers::memory_unit(sizes);
                let column = column.unit(&format!("{}/conn", unit.name));
                fields.push(field(column, move |c| {
                    let text = of(c).map(|bytes| numbers::three_digits(bytes / unit.size));
                    figure(c, Figure::Memory, text)
                }));
            }
        }
    }
    fields
}

fn field<'a>(column: Column, text: impl Fn(&Cell) -> Text + 'a) -> Field<'a> {
    Field { column, text: Box::new(text) }
}

impl Field<'_> {
    /// The field, dropped in the given order.
    pub fn rank(mut self, drop_rank: u8) -> Self {
        self.column.drop_rank = drop_rank;
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
pub fn per(asked: &Asked) -> &str {
    let operation = &asked.cost_per;
    if operation.is_request() { "req" } else { &operation.one }
}

fn ratio(cell: &Cell) -> Text {
    match cell.relation {
        Some(Relation::Baseline) => plain("1".to_owned()),
        _ => {
            let text = cell.ratio_to_baseline.map(|e| numbers::bare_ratio(&e));
            known_figure(cell, Figure::Cost, Unknown::Ratio, text)
        }
    }
}

fn rank(cell: &Cell) -> Text {
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
    let (title, drop_rank) = if then { ("rate now", 2) } else { ("rate", 4) };
    let column = Column::right("rate", drop_rank).titled(title).unit(unit.name).brief();
    field(column, move |c| {
        let lower_bound = if c.verdict.is(Kind::CoBound) { "≥ " } else { "" };
        let text = c.rate_per_s;
        let text = text.map(|e| format!("{lower_bound}{}", numbers::estimate(&e, unit.size)));
        known_figure(c, Figure::Rate, Unknown::Rate, text)
    })
}

/// Total time divided by the number of requests, with connections in parallel.
fn ms_per_request() -> Field<'static> {
    field(Column::right("wall", 2).titled("wall time").unit("ms/req").brief(), |c| {
        let upper_bound = if c.verdict.is(Kind::CoBound) { "≤ " } else { "" };
        let text = c.ms_per_request.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, 1.0)));
        known_figure(c, Figure::Rate, Unknown::MsPerRequest, text)
    })
}

/// The rate of the other load beside this one.
fn beside(cells: &[&Cell]) -> Field<'static> {
    let unit = numbers::rate_unit(means(cells, |c| c.beside_per_s));
    let column = Column::right("large", 2).titled("large requests").unit(unit.name).brief();
    field(column, move |c| {
        let text = c.beside_per_s.map(|e| numbers::estimate(&e, unit.size));
        known_figure(c, Figure::Latency, Unknown::Beside, text)
    })
}

fn instance(cells: &[&Cell], then: bool) -> Field<'static> {
    let unit = numbers::seconds_unit(means(cells, |c| c.instance_s));
    let title = if then { "instance now" } else { "instance" };
    field(Column::right("instance", 1).titled(title).unit(unit.name).brief(), move |c| {
        let upper_bound = if c.verdict.is(Kind::CoBound) { "≤ " } else { "" };
        let text = c.instance_s;
        let text = text.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, unit.size)));
        known_figure(c, Figure::Rate, Unknown::Instance, text)
    })
}

fn then() -> Field<'static> {
    field(Column::right("then", 2), |c| {
        c.then.as_deref().map_or_else(none, |text| plain(visible(text)))
    })
}

fn slowest(cells: &[&Cell]) -> Field<'static> {
    let unit = numbers::seconds_unit(cells.iter().filter_map(|c| c.slowest_instance_s));
    field(Column::right("slowest", 6).unit(unit.name), move |c| {
        let text = c.slowest_instance_s.map(|s| numbers::three_digits(s / unit.size));
        figure(c, Figure::Rate, text)
    })
}

/// A percentile in `unit`, with its interval if it has one. `is_unknown`: it was measured but is not
/// known.
pub fn latency(cell: &Cell, shown: Option<ShownPercentile>, unit: Unit, is_unknown: bool) -> Text {
    match shown.as_ref().map(|shown| numbers::percentile_in(shown, unit.size)) {
        None if is_unknown => not_known(),
        text => figure(cell, Figure::Latency, text),
    }
}

fn percentile(
    cells: &[&Cell],
    percentile: Percentile,
    name: &'static str,
    drop_rank: u8,
) -> Field<'static> {
    let all = cells.iter().filter_map(|c| Some(c.percentile(percentile)?.ns));
    let unit = numbers::time_unit(all);
    field(Column::right(name, drop_rank).unit(unit.name).brief(), move |c| {
        latency(c, c.percentile(percentile), unit, c.is_unknown(Unknown::Latency(percentile)))
    })
}

/// A latency of all rounds together, where rare delays show.
fn pooled(cells: &[&Cell], name: &'static str, of: fn(&Cell) -> Option<u64>) -> Field<'static> {
    let unit = numbers::time_unit(cells.iter().filter_map(|c| Some(of(c)? as f64)));
    field(Column::right(name, 9).unit(unit.name), move |c| {
        figure(c, Figure::Latency, of(c).map(|ns| numbers::three_digits(ns as f64 / unit.size)))
    })
}

/// How late the load sent: the 99th percentile. On request, unless it voids a latency.
fn lag(cells: &[&Cell]) -> Field<'static> {
    let of = |c: &Cell| Some(c.open_loop.as_ref()?.send_lag_ns.p99? as f64);
    let unit = numbers::time_unit(cells.iter().filter_map(|c| of(c)));
    let column = Column::right("lag", 8).titled("lag p99").unit(unit.name);
    let matters = cells.iter().any(|c| c.verdict.is(Kind::GeneratorBound));
    field(if matters { column } else { column.on_request() }, move |c| {
        // It describes the load itself, so the load's lateness does not void it.
        of(c).map_or_else(none, |ns| plain(numbers::three_digits(ns / unit.size)))
    })
}

fn of_open_loop(cell: &Cell, text: fn(&OpenLoopFigures) -> Option<String>) -> Text {
    // These figures describe the load itself, so its lateness does not void them.
    cell.open_loop.as_ref().and_then(text).map_or_else(none, plain)
}

fn unsent(open: &OpenLoopFigures) -> Option<String> {
    let share = || numbers::percent(open.unsent as f64 / open.due as f64);
    (open.due > 0).then(|| if open.unsent == 0 { "0".to_owned() } else { share() })
}

fn means(cells: &[&Cell], of: impl Fn(&Cell) -> Option<Estimate>) -> impl Iterator<Item = f64> {
    cells.iter().filter_map(move |c| Some(of(c)?.mean))
}

/// What a ratio means, in a word.
fn meaning(cell: &Cell) -> Text {
    let Some(relation) = cell.relation else { return plain(String::new()) };
    let tone = match relation {
        Relation::Cheaper => Tone::Good,
        Relation::Costlier => Tone::Warn,
        Relation::Inconclusive => Tone::Void,
        Relation::Baseline | Relation::Tied => Tone::Plain,
    };
    Text { text: word(relation).to_owned(), tone }
}

/// The name of a relation.
pub fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Baseline => "baseline",
        Relation::Tied => "tied",
        Relation::Cheaper => "cheaper",
        Relation::Costlier => "costlier",
        Relation::Inconclusive => "unclear",
    }
}
