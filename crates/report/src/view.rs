//! The view that terminal, Markdown and HTML share: a race as headings, tables of texts and sentences.
//!
//! The texts contain no control characters. They are not yet escaped for a format.

use crate::{
    answer::{Answer, answer},
    columns::fields,
    contenders::contenders,
    cores,
    curves::{Sweep, sweeps},
    gate,
    heads::heads_in_words,
    latency_ratios::latency_ratios,
    numbers,
    operations::operations,
    roles::roles,
    scaling::scaling,
    sentences::{notes, result},
    table::{Row, Table, visible},
    warm_ups::{none_needed, warm_ups},
    why::once,
};
use regatta_record::{Asked, Cell, Kind, LoadShape, Summary};
use serde::Serialize;

/// A race, ready for layout.
#[derive(Debug, Serialize)]
pub struct View {
    /// What the race found, for each load.
    pub answers: Vec<Answer>,
    /// Lines on the race, the machine, the noise floor and more.
    pub heading: Vec<String>,
    /// The result of `--fail-over` or of `regatta diff`.
    pub gate: Option<Table>,
    /// A table for each load.
    pub tables: Vec<Table>,
    /// Costs by role: a table for each load under which a contender had more than one role.
    pub roles: Vec<Table>,
    /// Operations other than requests: a table for each load with such operations.
    pub operations: Vec<Table>,
    /// Latency ratios: tables for each load under which latencies can be compared.
    pub latency_ratios: Vec<Table>,
    /// Warm-ups: a table for each load under which not all contenders were steady from the start. HTML
    /// does not show these.
    pub warm_ups: Vec<Table>,
    /// Scaling over cores: a table for each load that ran on several numbers of cores.
    pub scaling: Vec<Table>,
    /// Findings over loads that differ in one number.
    pub sweeps: Vec<Sweep>,
    /// Version and its age, flags, environment and replies of the contenders, if replies or versions
    /// are known. HTML does not show this table: it has its own list of contenders.
    pub contenders: Option<Table>,
    /// Contenders that were skipped: name, and the reason with what to do.
    pub skipped: Vec<(String, String)>,
    /// Warnings about the result.
    pub doubts: Vec<String>,
}

impl View {
    /// All tables, in the order in which terminal and Markdown show them.
    pub fn all_tables(&self) -> impl Iterator<Item = &Table> {
        let View { gate, tables, roles, operations, latency_ratios, .. } = self;
        let View { warm_ups, scaling, contenders, .. } = self;
        let first = gate.iter().chain(tables).chain(roles).chain(operations);
        first.chain(latency_ratios).chain(warm_ups).chain(scaling).chain(contenders)
    }
}

/// Makes the view of a summary.
pub fn view(summary: &Summary) -> View {
    let asked = &summary.asked;
    let mut tables: Vec<Table> = asked.loads.iter().map(|load| table(summary, load)).collect();
    once(&mut tables);
    let skipped = asked
        .entries
        .iter()
        .filter_map(|e| Some((visible(&e.name), visible(e.skipped.as_deref()?))))
        .collect();
    let missing = summary.precision.iter().flat_map(|precision| &precision.missing);
    let of_gate = summary.gate.iter().flat_map(|gate| &gate.doubts);
    let doubts = missing.chain(of_gate).chain(&summary.doubts).map(|d| visible(d)).collect();
    let gate = summary.gate.as_ref().map(gate::table);
    View {
        answers: answer(summary),
        heading: heading(summary),
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
        doubts,
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

fn heading(summary: &Summary) -> Vec<String> {
    let asked = &summary.asked;
    let setup = &asked.setup;
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let rounds = if asked.rounds == 1 { "round" } else { "rounds" };
    let unfinished = if summary.complete { "" } else { " · INCOMPLETE" };
    let run = match &summary.precision {
        Some(precision) if precision.rounds < asked.rounds => {
            format!("{} of at most {}", precision.rounds, asked.rounds)
        }
        _ => asked.rounds.to_string(),
    };
    let kernel = setup.kernel.split(" #").next().unwrap_or_default();
    let mut lines = vec![
        visible(&format!(
            "{} · {}{} · {} {rounds} of {} s · seed {}{unfinished}",
            asked.name,
            asked.workload,
            heads_in_words(asked),
            run,
            asked.window_s,
            asked.seed
        )),
        visible(&format!(
            "{}, {} CPUs, {}, {kernel} · server on CPU {}, load on CPU {}",
            if setup.cpu.is_empty() { "unknown CPU" } else { &setup.cpu },
            setup.cpus,
            numbers::memory(setup.memory_bytes),
            list(&asked.cpus.server),
            list(&asked.cpus.load)
        )),
    ];
    lines.extend(cores::line(asked));
    lines.extend(cold(asked));
    lines.push(match summary.noise_floor {
        Some(floor) => format!(
            "noise floor ±{}: smaller differences are not significant",
            numbers::percent(floor)
        ),
        None => "noise floor not known: differences may not be significant".to_owned(),
    });
    lines.extend(summary.machine_noise.map(|share| {
        let share = numbers::percent(share);
        format!(
            "{share} of the within-round variance followed the machine probe; ratios are adjusted \
             for it"
        )
    }));
    lines.extend(none_needed(summary));
    lines.extend(summary.precision.as_ref().map(|precision| {
        let (asked, rounds) = (numbers::percent(precision.asked), precision.rounds);
        match precision.reached {
            true => format!("precision ±{asked}: reached after {rounds} rounds"),
            false => {
                format!("precision ±{asked}: NOT REACHED after {rounds} rounds; see the doubts")
            }
        }
    }));
    lines
}

fn table(summary: &Summary, load: &LoadShape) -> Table {
    let cells: Vec<&Cell> = summary
        .cells
        .iter()
        .filter(|c| c.load == *load && c.verdict.kind != Kind::Skipped)
        .collect();
    let is_reference = |c: &Cell| summary.asked.is_reference(&c.contender);
    let (references, contenders): (Vec<&Cell>, Vec<&Cell>) =
        cells.iter().copied().partition(|c| is_reference(c));
    let fields = fields(summary, load, &cells);
    let row = |c: &&Cell| Row {
        reference: is_reference(c),
        cells: fields.iter().map(|field| (field.text)(c)).collect(),
    };
    let shared = match &shared_cpus(summary, load)[..] {
        [] => String::new(),
        [cpu] => format!(" · server and load share CPU {cpu}"),
        cpus => format!(" · server and load share CPUs {}", cpus.join(", ")),
    };
    Table {
        title: visible(&format!("{} · {load}{shared}", summary.asked.workload)),
        result: result(summary, load, &contenders),
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
