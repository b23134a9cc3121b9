//! The view that terminal, Markdown and the page share: a race as headings, tables of texts and sentences.
//!
//! The texts contain no control characters. They are not yet escaped for a format.

use crate::{
    numbers, regimes,
    table::{Row, Table, visible},
    tables::{
        columns::{Field, fields},
        curves::{Sweep, sweeps},
        gate,
        latency_ratios::latency_ratios,
        operations::operations,
        overview::{overall, overview},
        roles::roles,
        scaling::scaling,
        warm_ups::{none_needed, warm_ups},
        why::once,
    },
    texts::{
        answer::{Answer, answer},
        contenders::contenders,
        cores,
        doubts::doubts,
        heads::requests_in_words,
        sentences::notes,
    },
};
use regatta_record::{
    Asked, Cell, ContendedBlocks, DuelSeen, Figure, Kind, LoadShape, Setup, Summary, joined,
};
use serde::Serialize;

/// A race, ready for layout.
#[derive(Debug, Default, Serialize)]
pub struct View {
    /// What the race found, for each load.
    pub answers: Vec<Answer>,
    /// The answer over all loads, if there are several.
    pub overall: Option<String>,
    /// Lines on the race, the machine, the noise floor and more. The first is the race.
    pub heading: Vec<String>,
    /// Those of `heading` that help to read the figures: the noise floor, what was measured.
    pub hints: Vec<String>,
    /// Ratios to the baseline, loads × contenders, if there are several loads.
    pub overview: Option<Table>,
    /// The result of `--fail-over` or of `regatta diff`.
    pub gate: Option<Table>,
    /// A table for each load, or one for a race in two regimes; without rows if it was not raced yet.
    pub tables: Vec<Table>,
    /// Costs by role: a table for each load under which a contender had more than one role.
    pub roles: Vec<Table>,
    /// Operations other than requests: a table for each load with such operations.
    pub operations: Vec<Table>,
    /// Latency ratios: tables for each load under which latencies can be compared.
    pub latency_ratios: Vec<Table>,
    /// Warm-ups: a table for each load under which not all contenders were steady from the start.
    pub warm_ups: Vec<Table>,
    /// Scaling over cores: a table for each load that ran on several numbers of cores.
    pub scaling: Vec<Table>,
    /// Findings over loads that differ in one number.
    pub sweeps: Vec<Sweep>,
    /// Version and its age, flags, environment and replies of the contenders, if replies or versions
    /// are known. The page has its own list of contenders.
    pub contenders: Option<Table>,
    /// Contenders that were skipped: names, and the reason with what to do.
    pub skipped: Vec<(String, String)>,
    /// Warnings about the result.
    pub doubts: Vec<String>,
}

impl View {
    /// The tables of the loads that were raced.
    pub fn raced(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| !table.rows.is_empty())
    }

    /// All other tables about single loads, in the order in which terminal and Markdown show them.
    pub fn details(&self) -> impl Iterator<Item = &Table> {
        let View { roles, operations, latency_ratios, warm_ups, .. } = self;
        roles.iter().chain(operations).chain(latency_ratios).chain(warm_ups)
    }
}

/// Makes the view of a summary, without columns that are shown only if they are chosen. A note that
/// several tables have is only in the first one; the others refer to it.
pub fn view(summary: &Summary) -> View {
    let mut view = in_full(summary);
    view.tables.iter_mut().for_each(Table::without_requested);
    once(view.tables.iter_mut());
    view
}

/// Makes the view of a summary whose tables have all of their columns and notes.
pub fn in_full(summary: &Summary) -> View {
    let asked = &summary.asked;
    let regimes = asked.regimes();
    let tables = match &regimes {
        Some(regimes) => vec![regimes::table(summary, regimes)],
        None => asked.loads.iter().map(|load| table(summary, load)).collect(),
    };
    let skipped = asked.skipped().into_iter();
    let skipped = skipped.map(|(names, why)| (visible(&names.join(", ")), visible(&why))).collect();
    let gate = summary.gate.as_ref().map(gate::table);
    let hints = hints(summary);
    View {
        answers: answer(summary),
        overall: overall(summary).filter(|_| regimes.is_none()),
        heading: [vec![race(summary)], hints.clone(), duels(summary), machine(summary)].concat(),
        hints,
        overview: overview(summary).filter(|_| regimes.is_none()),
        gate,
        tables,
        roles: roles(summary),
        operations: operations(summary),
        latency_ratios: latency_ratios(summary),
        warm_ups: warm_ups(summary),
        contenders: contenders(summary),
        scaling: scaling(summary),
        sweeps: sweeps(summary),
        skipped,
        doubts: doubts(summary),
    }
}

/// A line that explains counted loads, if there are any: they measure cold starts.
fn cold(asked: &Asked) -> Option<String> {
    asked.loads.iter().any(|load| load.requests.is_some()).then(|| {
        "loads with a fixed number of requests measure cold starts: they begin with the first requests \
         after a fresh start"
            .to_owned()
    })
}

/// The race and its rounds.
fn race(summary: &Summary) -> String {
    let asked = &summary.asked;
    let rounds = if asked.rounds == 1 { "round" } else { "rounds" };
    let unfinished = if summary.complete { "" } else { " · INCOMPLETE" };
    let run = match &summary.precision {
        Some(precision) if precision.rounds < asked.rounds => {
            format!("{} of at most {}", precision.rounds, asked.rounds)
        }
        _ => asked.rounds.to_string(),
    };
    let run = match summary.duels.iter().map(|duel| duel.lives).max() {
        Some(lives) => {
            let slices = |s: f64| format!(", slices of {} ms", numbers::short(s * 1e3));
            let life = if lives == 1 { "life" } else { "lives" };
            format!("{lives} {life}{}", asked.slice_s.map(slices).unwrap_or_default())
        }
        None => format!("{run} {rounds} of {} s", asked.window_s),
    };
    visible(&format!(
        "{} · {}{} · {run} · seed {}{unfinished}",
        asked.name,
        asked.workload,
        requests_in_words(asked),
        asked.seed
    ))
}

/// The machine and its CPUs; of two machines, that of the contenders first.
fn machine(summary: &Summary) -> Vec<String> {
    let asked = &summary.asked;
    let (server, load) = (joined(&asked.cpus.server, ","), joined(&asked.cpus.load, ","));
    let Some(machine) = &asked.server else {
        let line =
            format!("{} · server on CPU {server}, load on CPU {load}", hardware(&asked.setup));
        return [visible(&line)].into_iter().chain(cores::line(asked)).collect();
    };
    let (name, address, of_server) = (&machine.name, machine.address, hardware(&machine.setup));
    let lines = [
        format!("server machine {name} ({address}): {of_server} · server on CPU {server}"),
        format!("load machine: {} · load on CPU {load}", hardware(&asked.setup)),
    ];
    lines.map(|line| visible(&line)).to_vec()
}

/// CPU, memory and kernel.
fn hardware(setup: &Setup) -> String {
    let kernel = setup.kernel.split(" #").next().unwrap_or_default();
    let cpu = if setup.cpu.is_empty() { "unknown CPU" } else { &setup.cpu };
    let memory = numbers::memory(setup.memory_bytes);
    format!("{cpu}, {} CPUs, {memory}, {kernel}", setup.cpus)
}

/// What helps to read the figures.
fn hints(summary: &Summary) -> Vec<String> {
    let raced = summary.cells.iter().any(|cell| cell.verdict.kind() != Kind::Skipped);
    let mut lines = Vec::new();
    lines.extend(precision(summary));
    // In duels, the twin is a row; a significant difference is a doubt.
    lines.extend((raced && summary.duels.is_empty()).then(|| {
        match summary.noise_floor {
            Some(floor) => format!(
                "noise floor ±{}: the program entered twice may appear to differ by this much",
                numbers::percent(floor)
            ),
            None => {
                "noise floor not known: no program was entered twice, or its interval is too wide"
                    .to_owned()
            }
        }
    }));
    lines.extend(cold(&summary.asked));
    lines.extend(none_needed(summary));
    lines
}

/// The precision that was reached, against the requested one.
fn precision(summary: &Summary) -> Option<String> {
    let precision = summary.precision.as_ref()?;
    let asked = numbers::percent(precision.asked);
    let in_duels = !summary.duels.is_empty();
    let after = format!("{} {}", precision.rounds, if in_duels { "lives" } else { "rounds" });
    Some(match (precision.reached, in_duels) {
        (true, _) => format!("precision ±{asked}: reached after {after}"),
        (false, false) => format!("precision ±{asked}: NOT REACHED after {after}; see the doubts"),
        (false, true) => {
            let wide = wide(summary, precision.asked);
            format!("precision ±{asked}: not reached after {after} for {}", wide.join(", "))
        }
    })
}

/// The contenders whose ratios are wider than the requested precision, with the widest half-width.
fn wide(summary: &Summary, asked: f64) -> Vec<String> {
    let mut wide: Vec<(&str, f64)> = Vec::new();
    let ranked = summary.cells.iter().filter(|c| !summary.asked.is_reference(&c.contender));
    for (cell, ratio) in ranked.filter_map(|c| Some((c, c.ratio_to_baseline?))) {
        let half = numbers::half_width(&ratio);
        match wide.iter_mut().find(|(name, _)| *name == cell.contender) {
            Some((_, widest)) => *widest = widest.max(half),
            None => wide.push((&cell.contender, half)),
        }
    }
    wide.retain(|(_, half)| *half > asked);
    wide.iter().map(|(name, half)| format!("{name} (±{})", numbers::percent(*half))).collect()
}

/// Lives, states of the machine, blocks that were left out, and heats, for each load.
fn duels(summary: &Summary) -> Vec<String> {
    let regimes = summary.asked.regimes();
    let names = regimes.as_ref().map(regimes::names);
    let line = |duel: &DuelSeen| {
        let name = names.iter().flatten().find(|(load, _)| *load == duel.load);
        let load = name.map_or_else(|| format!("at {}", duel.load), |(_, name)| name.clone());
        let states: Vec<String> = duel.states.iter().map(|s| format!("{:.2}×", s.factor)).collect();
        let states = match &states[..] {
            [] | [_] => "the machine was in one state".to_owned(),
            states => format!(
                "the machine was in {} states, with costs of {}",
                states.len(),
                states.join(" and ")
            ),
        };
        let busy = duel.busy.map_or_else(String::new, |ContendedBlocks { blocks, of, .. }| {
            format!("; other programs ran beside {blocks} of {of} blocks")
        });
        let left_out = match (duel.left_out, duel.left_out_slices) {
            (0, 0) => String::new(),
            (blocks, 0) => {
                format!("; {blocks} blocks left out, because the machine changed in them")
            }
            (0, slices) => format!("; {slices} slices left out, because the machine was disturbed"),
            (blocks, slices) => format!(
                "; {blocks} blocks and {slices} slices left out, because the machine changed or was disturbed"
            ),
        };
        let heats: Vec<String> = duel.heats.iter().map(|heat| heat.join(", ")).collect();
        let heats = match &heats[..] {
            [] | [_] => String::new(),
            heats => format!("; alive together: {}", heats.join(" | ")),
        };
        visible(&format!("{load}: {} lives; {states}{busy}{left_out}{heats}", duel.lives))
    };
    summary.duels.iter().map(line).collect()
}

fn table(summary: &Summary, load: &LoadShape) -> Table {
    let cells: Vec<&Cell> = summary
        .cells
        .iter()
        .filter(|c| c.load == *load && c.verdict.kind() != Kind::Skipped)
        .collect();
    let is_reference = |c: &Cell| summary.asked.is_reference(&c.contender);
    let (references, contenders): (Vec<&Cell>, Vec<&Cell>) =
        cells.iter().copied().partition(|c| is_reference(c));
    let mut fields = fields(summary, load, &cells);
    let is_known = |field: &Field<'_>| {
        cells.iter().any(|c| !["", numbers::NONE].contains(&(field.text)(c).text.as_str()))
    };
    fields.retain(|field| cells.is_empty() || is_known(field));
    let row = |c: &&Cell| Row {
        reference: is_reference(c),
        cells: fields.iter().map(|field| (field.text)(c)).collect(),
        ratio: c.ratio_to_baseline.filter(|_| !c.verdict.voids(Figure::Cost)),
    };
    let shared = match &shared_cpus(summary, load)[..] {
        [] => String::new(),
        [cpu] => format!(" · server and load share CPU {cpu}"),
        cpus => format!(" · server and load share CPUs {}", cpus.join(", ")),
    };
    Table {
        title: visible(&format!("{} · {load}{shared}", summary.asked.workload)),
        result: String::new(),
        rows: contenders.iter().chain(&references).map(row).collect(),
        columns: fields.into_iter().map(|field| field.column).collect(),
        notes: notes(summary, load, &cells),
    }
}

fn shared_cpus(summary: &Summary, load: &LoadShape) -> Vec<String> {
    let cpus = &summary.asked.cpus;
    if !cpus.are_shared(load) {
        return Vec::new();
    }
    cpus.of_load(load).iter().map(u32::to_string).collect()
}
