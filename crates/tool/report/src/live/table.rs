//! The table of a running race: the contenders under the load that runs now, with what is known so far.

use crate::{
    numbers,
    screen::{
        ink::{BOLD, Ink},
        table_layout,
    },
    table::{Column, Row, Table, Text, Tone, visible},
    tables::columns::per,
};
use regatta_record::{
    Asked, Estimate, JudgedCell, Kind, LoadShape, Outcome, Relation, RoundEnd, Schedule,
};

/// Lines of the table besides its rows: title, column titles, units, and the rule above the references.
const OTHER_LINES: usize = 4;
/// Fewest rows that are worth a table.
const FEWEST: usize = 2;

/// What is known so far about a race.
#[derive(Debug, Default)]
pub struct Watched {
    asked: Option<Box<Asked>>,
    /// The last judgement on each cell.
    judged: Vec<JudgedCell>,
    /// Figures of the last round of each cell, as long as there is no judgement.
    rounds: Vec<Raw>,
}

/// The figures of a single round.
#[derive(Debug)]
struct Raw {
    contender: String,
    load: LoadShape,
    cost_ns: Option<f64>,
    rate_per_s: f64,
    /// Number of rounds that were seen so far.
    seen: u32,
}

impl Watched {
    /// Nothing is known yet about this race.
    pub fn new(asked: &Asked) -> Watched {
        Watched { asked: Some(Box::new(asked.clone())), ..Watched::default() }
    }

    /// The plan of the race.
    pub fn asked(&self) -> Option<&Asked> {
        self.asked.as_deref()
    }

    /// Adds a round.
    pub fn ended(&mut self, round: &RoundEnd) {
        if round.pass.is_none() || round.outcome != Outcome::Finished || round.window_ns == 0 {
            return;
        }
        // Requests may not be what costs are per.
        let by_request = self.asked().is_some_and(|asked| asked.cost_per.is_request());
        let cost_ns = round.server_cpu_ns.filter(|_| by_request && round.requests > 0);
        let cost_ns = cost_ns.map(|ns| ns as f64 / round.requests as f64);
        let rate_per_s = round.requests as f64 * 1e9 / round.window_ns as f64;
        let is_it = |one: &Raw| one.contender == round.contender && one.load == round.load;
        let seen = 1 + self.rounds.iter().find(|one| is_it(one)).map_or(0, |one| one.seen);
        self.rounds.retain(|one| !is_it(one));
        let (contender, load) = (round.contender.clone(), round.load);
        self.rounds.push(Raw { contender, load, cost_ns, rate_per_s, seen });
    }

    /// Adds the judgements that changed.
    pub fn judged(&mut self, changed: &[JudgedCell]) {
        for cell in changed {
            self.judged.retain(|old| old.contender != cell.contender || old.load != cell.load);
            self.judged.push(cell.clone());
        }
    }

    /// The contenders under a load whose ratio to the baseline is known: name and ratio, cheapest first.
    pub fn ratios(&self, load: &LoadShape) -> Vec<(String, Estimate)> {
        let Some(asked) = self.asked() else { return Vec::new() };
        let of_load = self.judged.iter().filter(|cell| cell.load == *load);
        let compared = of_load.filter(|cell| {
            cell.contender != asked.baseline && !asked.is_reference(&cell.contender)
        });
        let known = |cell: &JudgedCell| Some((visible(&cell.contender), cell.ratio_to_baseline?));
        let mut all: Vec<(String, Estimate)> = compared.filter_map(known).collect();
        all.sort_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
        all
    }

    /// The table of a load, in at most `height` lines of at most `width` columns, with an arrow at the
    /// contender that runs now. Empty if there is no room for it.
    pub fn lines(
        &self,
        (running, load): &(String, LoadShape),
        title: &str,
        (width, height): (usize, usize),
        colour: bool,
    ) -> Vec<String> {
        let Some(asked) = self.asked() else { return Vec::new() };
        let mut table = self.table(asked, load, running);
        let room = height.saturating_sub(OTHER_LINES);
        if room < FEWEST.min(table.rows.len()) || table.rows.is_empty() {
            return Vec::new();
        }
        let hidden = table.rows.len().saturating_sub(room);
        table.rows.truncate(room);
        let mut ink = Ink::new(colour);
        let more = if hidden > 0 { format!(" · {hidden} more contenders") } else { String::new() };
        let title = crate::screen::text::cut(&format!("{title}{more}"), width);
        let title = ink.styled(&title, BOLD);
        ink.line(&title);
        table_layout::draw(&mut ink, &table, width, None);
        ink.text.lines().map(str::to_owned).collect()
    }

    fn table(&self, asked: &Asked, load: &LoadShape, running: &str) -> Table {
        let there = asked.contenders.iter().filter(|name| !asked.is_skipped(name));
        let names: Vec<&String> = there.collect();
        let judged = |name: &str| {
            self.judged.iter().find(|cell| cell.contender == name && cell.load == *load)
        };
        let raw =
            |name: &str| self.rounds.iter().find(|one| one.contender == name && one.load == *load);
        let cost = |name: &str| {
            let mean = judged(name).and_then(|cell| Some(cell.cost_ns_per_request?.mean));
            mean.or_else(|| raw(name)?.cost_ns)
        };
        let rate = |name: &str| {
            let mean = judged(name).and_then(|cell| Some(cell.rate_per_s?.mean));
            mean.or_else(|| Some(raw(name)?.rate_per_s))
        };
        let base = cost(&asked.baseline);
        let cost_unit = numbers::cost_unit(names.iter().filter_map(|name| cost(name)));
        let rate_unit = numbers::rate_unit(names.iter().filter_map(|name| rate(name)));
        let figure = |value: Option<f64>, unit: f64| Text {
            text: value.map_or_else(String::new, |value| numbers::three_digits(value / unit)),
            tone: Tone::Plain,
        };
        let row = |name: &&String| {
            let cell = judged(name);
            let ratio = cell.and_then(|cell| cell.ratio_to_baseline);
            let rough = || Some(format!("{:.2}", cost(name)? / base?));
            let fault = cell.map(|cell| cell.verdict).filter(|kind| {
                matches!(kind, Kind::Disqualified | Kind::Failed | Kind::CannotHold)
            });
            let text = match ratio {
                _ if fault.is_some() => fault.map(|kind| kind.name().to_owned()),
                _ if **name == asked.baseline => cost(name).map(|_| "1".to_owned()),
                Some(e) => Some(numbers::bare_ratio(&e)),
                None => rough(),
            };
            let tone = match cell.and_then(|cell| cell.relation) {
                _ if fault.is_some() => Tone::Bad,
                Some(Relation::Cheaper) => Tone::Good,
                Some(Relation::Costlier) => Tone::Warn,
                Some(Relation::Inconclusive) => Tone::Void,
                _ => Tone::Plain,
            };
            let arrow = if **name == running { "▶" } else { " " };
            let seen = raw(name).map_or(0, |raw| raw.seen);
            let rounds = cell.map_or(0, |cell| cell.rounds).max(seen);
            let cells = vec![
                Text { text: format!("{arrow} {}", visible(name)), tone: Tone::Plain },
                figure(cost(name), cost_unit.size),
                Text { text: text.unwrap_or_default(), tone },
                figure(rate(name), rate_unit.size),
                Text { text: rounds.to_string(), tone: Tone::Void },
            ];
            Row { ratio, ..Row::plain(asked.is_reference(name), cells) }
        };
        let mut rows: Vec<(Option<f64>, Row)> = names
            .iter()
            .map(|name| (cost(name).filter(|_| judged(name).is_some()), row(name)))
            .collect();
        // Those without a judgement stay in their order, after the others.
        rows.sort_by(|(a, one), (b, other)| {
            let key = |cost: &Option<f64>| cost.unwrap_or(f64::INFINITY);
            one.reference.cmp(&other.reference).then(key(a).total_cmp(&key(b)))
        });
        let columns = vec![
            Column::left("contender").titled("  contender"),
            Column::right("cost", 0).unit(&format!("{}/{}", cost_unit.name, visible(per(asked)))),
            Column::right("ratio", 1).titled(&format!("ratio to {}", visible(&asked.baseline))),
            Column::right("rate", 3).unit(rate_unit.name),
            Column::right(if asked.schedule == Schedule::Duels { "lives" } else { "rounds" }, 2),
        ];
        Table::plain(String::new(), columns, rows.into_iter().map(|(_, row)| row).collect())
    }
}
