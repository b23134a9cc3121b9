//! What terminal, Markdown and HTML show alike: a race as headings, tables of texts and sentences.
//!
//! All texts in here are free of control characters; nothing is escaped for a format yet.

use crate::{
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

/// A race, ready to be laid out.
#[derive(Debug, Serialize)]
pub struct View {
    /// Race, machine, noise floor: a line each.
    pub heading: Vec<String>,
    /// What became of `--fail-over`.
    pub gate: Option<Table>,
    /// A table for each load.
    pub tables: Vec<Table>,
    /// What each role took: a table for each load under which a contender had more than one.
    pub roles: Vec<Table>,
    /// Further kinds of operations: a table for each load under which there were any.
    pub operations: Vec<Table>,
    /// Latencies compared: tables for each load under which any can be.
    pub latency_ratios: Vec<Table>,
    /// How contenders warmed up: a table for each load under which not all were steady at once.
    pub warm_ups: Vec<Table>,
    /// What more cores changed: a table for each load that was run on several counts of them.
    pub scaling: Vec<Table>,
    /// What loads that differ in one number say together.
    pub sweeps: Vec<Sweep>,
    /// Version and its age, flags, environment and replies of the contenders, where replies or versions
    /// are known.
    pub contenders: Option<Table>,
    /// Contenders that did not take part: name, and why with how to get it.
    pub skipped: Vec<(String, String)>,
    /// What might mislead.
    pub doubts: Vec<String>,
}

impl View {
    /// All tables, in the order in which they are shown.
    pub fn all_tables(&self) -> impl Iterator<Item = &Table> {
        let View { gate, tables, roles, operations, latency_ratios, .. } = self;
        let View { warm_ups, scaling, contenders, .. } = self;
        let first = gate.iter().chain(tables).chain(roles).chain(operations);
        first.chain(latency_ratios).chain(warm_ups).chain(scaling).chain(contenders)
    }
}

/// Lays out a summary.
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

/// What counted loads measure: they begin with a contender's first requests.
fn cold(asked: &Asked) -> Option<String> {
    asked.loads.iter().any(|load| load.requests.is_some()).then(|| {
        "loads with a number of requests are races of cold starts: each begins with the first requests \
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
            "noise floor ±{}: smaller differences mean nothing here",
            numbers::percent(floor)
        ),
        None => "noise floor not known: differences may mean nothing".to_owned(),
    });
    lines.extend(summary.machine_noise.map(|share| {
        let share = numbers::percent(share);
        format!(
            "a probe saw {share} of the scatter within rounds: the machine's, taken off the ratios"
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
