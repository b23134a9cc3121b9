//! The plan of a race, as text for a terminal and as JSON.

use crate::{
    formats::json::pretty, screen::text::wrap, table::visible, texts::heads::requests_in_words,
};
use regatta_record::{Asked, LoadShape, RacePlan, joined};

/// The plan as JSON: the record itself.
pub fn plan_json(plan: &RacePlan) -> String {
    pretty(plan)
}

/// The plan for a terminal `width` columns wide.
#[expect(clippy::too_many_lines, reason = "a line for each setting")]
pub fn plan_text(plan: &RacePlan, width: usize) -> String {
    let asked = &plan.asked;
    let mut lines = vec![
        format!(
            "{} · {}{} · {} · seed {}",
            asked.name,
            asked.workload,
            requests_in_words(asked),
            passes(plan),
            asked.seed
        ),
        String::new(),
        format!("contenders, on CPU {}{}", joined(&asked.cpus.server, ","), there(asked)),
    ];
    let here = if asked.server.is_some() { " of this machine" } else { "" };
    let twin = asked.twin();
    for entry in asked.entries.iter().filter(|entry| entry.skipped.is_none()) {
        let role = match () {
            () if entry.name == asked.baseline => " (the baseline)",
            () if Some(&entry.name) == twin.as_ref() => " (for the noise floor)",
            () => "",
        };
        let command = match entry.running {
            Some(_) => visible(&entry.command()),
            None => entry.start.join(" "),
        };
        lines.push(format!("  {}{role}: {}", entry.name, command));
    }
    for entry in &asked.entries {
        if let Some(why) = &entry.skipped {
            lines.push(format!("  {} is skipped: {why}", entry.name));
        }
    }
    lines.extend([
        String::new(),
        format!("loads, from CPU {}{here}", joined(&asked.cpus.load, ",")),
    ]);
    for load in &asked.loads {
        lines.push(format!("  {load}{}", cpus(plan, load)));
    }
    lines.extend(asked.left_out.iter().map(|load| format!("  left out: {load}")));
    lines.extend(plan.cannot_hold.iter().map(|why| format!("  not raced: {why}")));
    if plan.pilot_starts > 0 {
        lines.push(format!(
            "  {}; a pilot pass of {} determines the rate",
            range([plan.loads_at_shares; 2], "more load", "more loads"),
            range([plan.pilot_starts; 2], "start", "starts")
        ));
    }
    if plan.observed > 0 {
        lines.push(format!(
            "  first, {} observed until the cost is steady, at most {} s each (a cell is one contender under \
             one load)",
            range([plan.observed; 2], "cell is", "cells are"),
            asked.settle_s
        ));
    }
    lines.push(String::new());
    let [least, most] = plan.duration_s.map(time);
    lines.push(format!(
        "{}, {}. Duration: between {least} and {most}{}.",
        range([plan.cells; 2], "cell", "cells"),
        range(plan.starts, "start", "starts"),
        if plan.counted.is_empty() { "" } else { ", plus the counted loads" }
    ));
    if !plan.counted.is_empty() {
        let counted: Vec<String> = plan.counted.iter().map(LoadShape::to_string).collect();
        lines.push(format!(
            "Counted loads end with their last reply, so their duration is unknown: {}.",
            counted.join("; ")
        ));
    }
    lines.push(match &asked.server {
        None => "Nothing was started.".to_owned(),
        Some(machine) => format!(
            "Nothing was started, except an agent on {} that described it. Whether the commands are there was not checked.",
            machine.name
        ),
    });
    let wrapped = lines.iter().flat_map(|line| {
        let indent = if line.starts_with(' ') { 4 } else { 0 };
        wrap(&visible(line), width, indent)
    });
    wrapped.map(|line| line + "\n").collect()
}

/// Where contenders run, if it is another machine.
fn there(asked: &Asked) -> String {
    let place = asked.server.as_ref().map(|machine| {
        let dir = machine.dir.display();
        format!(" of {}, in {dir}; {{host}} is {}", machine.name, machine.address)
    });
    place.unwrap_or_default()
}

/// How often and how long all are measured.
fn passes(plan: &RacePlan) -> String {
    let asked = &plan.asked;
    match plan.slice_s {
        None => format!(
            "{} of {} s after at most {} s of warm-up",
            range(plan.rounds, "round", "rounds"),
            asked.window_s,
            asked.warm_up_s
        ),
        Some(lengths) => {
            let [least, most] = lengths.map(|s| (s * 1e3).round());
            let length =
                if least == most { most.to_string() } else { format!("{least} to {most}") };
            let until = match (asked.precision, asked.time_s) {
                (None, None) => String::new(),
                (precision, time) => {
                    let precision = precision.map(|p| format!("±{}%", (p * 1e4).round() / 100.0));
                    let time = time.map(|s| format!("{s} s"));
                    let ends: Vec<String> = precision.into_iter().chain(time).collect();
                    format!(", until {}", ends.join(" or "))
                }
            };
            let in_rounds = asked.loads.iter().any(|load| !asked.is_duel(load));
            let others = match in_rounds {
                true => format!("; some loads in rounds of {} s", asked.window_s),
                false => String::new(),
            };
            let lives = range(plan.rounds, "life", "lives");
            format!("{lives} in slices of {length} ms{until}{others}")
        }
    }
}

/// The CPUs of server and load, if this load changes them.
fn cpus(plan: &RacePlan, load: &LoadShape) -> String {
    if load.cores.is_none() {
        return String::new();
    }
    let cpus = &plan.asked.cpus;
    let shared = if cpus.are_shared(load) { ", shared" } else { "" };
    format!(
        ": server on CPU {}, load on CPU {}{shared}",
        joined(&cpus.of_server(load), ","),
        joined(&cpus.of_load(load), ",")
    )
}

fn range([least, most]: [u32; 2], one: &str, many: &str) -> String {
    let word = if most == 1 { one } else { many };
    if least == most { format!("{most} {word}") } else { format!("{least} to {most} {word}") }
}

/// `40 s`, `12 min`, `3.5 h`.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{:.0} s", s.ceil()),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}
