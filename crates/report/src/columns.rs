//! The columns of a load's table: which ones this load has, and what stands in them.

use crate::{
    numbers::{self, NONE},
    table::{Column, Text, Tone, verdict_tone, visible},
};
use regatta_record::{
    Cell, Estimate, Figure, Kind, LoadShape, NULL, OpenLoopFigures, Percentile, Relation,
    ShownPercentile, Summary, Unknown,
};

/// Connections from which on it is told what each of them takes of memory. With fewer, what else
/// the program does meanwhile is more.
pub const MEMORY_FROM: u32 = 100;

/// A column, and the text of each contender in it.
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
        // The time of an instance is what a burst is for.
        (fields[2].column.goes, fields[3].column.goes, fields[4].column.goes) = (4, 4, 5);
        fields.push(instance(cells, then));
        fields.extend(then.then(self::then));
        fields.push(field("slowest", 6, slowest));
    } else if !summary.asked.cpus.are_shared(load) {
        fields.push(match load.drive.rate() {
            None => rate(cells, then),
            // It says little more than the verdict.
            Some(_) => rate(cells, false).brief().goes(8),
        });
        fields.extend(then.then(self::then));
        if load.requests.is_some() {
            fields.push(ms_per_request().brief());
        }
        let (p50, p99, large) = if load.beside.is_some() {
            // No cost, ratio or band can be told; whether the small ones wait is what it is for.
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
        // Here too, but the columns that would go are not there.
        _ if load.beside.is_some() => (8, 8),
        // What they take of memory is what silent connections are for.
        _ => {
            (fields[2].column.goes, fields[3].column.goes, fields[4].column.goes) = (3, 4, 5);
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

fn field<'a>(title: &str, goes: u8, text: impl Fn(&Cell) -> Text + 'a) -> Field<'a> {
    let column = Column { title: title.to_owned(), right: true, goes, brief: false };
    Field { column, text: Box::new(text) }
}

impl Field<'_> {
    fn left(mut self) -> Self {
        self.column.right = false;
        self
    }

    fn goes(mut self, goes: u8) -> Self {
        self.column.goes = goes;
        self
    }

    fn brief(mut self) -> Self {
        self.column.brief = true;
        self
    }
}

/// A text as it is.
pub fn plain(text: String) -> Text {
    Text { text, tone: Tone::Plain }
}

/// What is not there.
pub fn none() -> Text {
    Text { text: NONE.to_owned(), tone: Tone::Void }
}

/// A figure, in parentheses where the verdict voids it.
pub fn figure(cell: &Cell, figure: Figure, text: Option<String>) -> Text {
    match text {
        None => none(),
        Some(text) if cell.verdict.voids(figure) => {
            Text { text: format!("({text})"), tone: Tone::Void }
        }
        Some(text) => plain(text),
    }
}

/// A figure that was measured and whose interval says nothing.
pub const NOT_KNOWN: &str = "not known";

/// A figure of a cell that may be not known, in parentheses where the verdict voids it.
fn known_figure(cell: &Cell, void: Figure, unknown: Unknown, text: Option<String>) -> Text {
    match text {
        None if cell.is_unknown(unknown) => not_known(),
        text => figure(cell, void, text),
    }
}

/// What was measured and is not known.
pub fn not_known() -> Text {
    Text { text: NOT_KNOWN.to_owned(), tone: Tone::Void }
}

/// What costs are per, as short as it stands in the title of a column.
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

/// With `now` in its title where what was once measured stands beside it; it stays then.
fn rate(cells: &[&Cell], then: bool) -> Field<'static> {
    let unit = numbers::rate_unit(means(cells, |c| c.rate_per_s));
    let (now, goes) = if then { (" now", 2) } else { ("", 6) };
    field(&format!("{}{now}", unit.name), goes, move |c| {
        let lower_bound = if c.verdict.is(Kind::CoBound) { "≥ " } else { "" };
        let text = c.rate_per_s;
        let text = text.map(|e| format!("{lower_bound}{}", numbers::estimate(&e, unit.size)));
        known_figure(c, Figure::Rate, Unknown::Rate, text)
    })
}

/// The whole time over the requests, connections being at work at once.
fn ms_per_request() -> Field<'static> {
    field("wall ms/req", 2, |c| {
        let upper_bound = if c.verdict.is(Kind::CoBound) { "≤ " } else { "" };
        let text = c.ms_per_request.map(|e| format!("{upper_bound}{}", numbers::estimate(&e, 1.0)));
        known_figure(c, Figure::Rate, Unknown::MsPerRequest, text)
    })
}

/// What the server did of the load beside.
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

/// A percentile with its interval, where it has one. `is_unknown`: it was measured and is not known.
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
    // What the load itself did is no figure that its lateness could void.
    cell.open_loop.as_ref().and_then(text).map_or_else(none, plain)
}

fn lag(open: &OpenLoopFigures) -> Option<String> {
    open.send_lag_ns.p99.map(|ns| numbers::time(ns as f64))
}

fn unsent(open: &OpenLoopFigures) -> Option<String> {
    let share = || numbers::percent(open.unsent as f64 / open.due as f64);
    (open.due > 0).then(|| if open.unsent == 0 { "0".to_owned() } else { share() })
}

/// Growth can come out below nothing, where it is less than what else went on.
fn memory(cell: &Cell, bytes: Option<f64>) -> Text {
    let sign = |b: f64| if b < 0.0 { "-" } else { "" };
    let told = |b: f64| format!("{}{}", sign(b), numbers::memory(b.abs().round() as u64));
    figure(cell, Figure::Memory, bytes.map(told))
}

fn means(cells: &[&Cell], of: impl Fn(&Cell) -> Option<Estimate>) -> impl Iterator<Item = f64> {
    cells.iter().filter_map(move |c| Some(of(c)?.mean))
}

/// What a ratio means, in a word. A difference that cannot be told shows how wide the doubt is.
fn meaning(cell: &Cell) -> Text {
    let toned = |text: &str, tone| Text { text: text.to_owned(), tone };
    match (cell.relation, cell.ratio_to_baseline) {
        (Some(Relation::NotToldApart), Some(e)) => {
            toned(&format!("±{}?", numbers::percent((e.high / e.low).sqrt() - 1.0)), Tone::Void)
        }
        (Some(relation), _) => {
            let tone = match relation {
                Relation::Cheaper => Tone::Good,
                Relation::Dearer => Tone::Warn,
                _ => Tone::Plain,
            };
            toned(word(relation), tone)
        }
        _ if cell.contender == NULL => toned("floor", Tone::Void),
        _ => toned("", Tone::Plain),
    }
}

/// A relation in a word.
pub fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Baseline => "baseline",
        Relation::Tied => "tied",
        Relation::Cheaper => "cheaper",
        Relation::Dearer => "dearer",
        Relation::NotToldApart => "not told apart",
    }
}
