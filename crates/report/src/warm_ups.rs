//! Warm-ups: a table for each load under which a contender was not steady from the start, or a sentence
//! that all were.

use crate::{
    columns::plain,
    numbers,
    table::{Column, Row, Table, visible},
};
use regatta_record::{Cell, LoadShape, Operation, Settling, Summary, WarmUpClass};

/// The tables, in the order of the loads.
pub fn warm_ups(summary: &Summary) -> Vec<Table> {
    summary.asked.loads.iter().filter_map(|load| table(summary, load)).collect()
}

/// Says that no contender needed a warm-up. `None` if one did, or if none was observed.
pub fn none_needed(summary: &Summary) -> Option<String> {
    let mut seen = summary.cells.iter().filter_map(|cell| cell.settling.as_ref()).peekable();
    seen.peek()?;
    seen.all(is_flat).then(|| "warm-up: every cost was steady from the start".to_owned())
}

/// A line on the observed warm-up of a server.
pub fn seen_in_words(settling: Option<&Settling>) -> String {
    settling.map_or_else(|| "its CPU time could not be read".to_owned(), in_words)
}

/// A line on an observed warm-up.
pub fn in_words(settling: &Settling) -> String {
    let class = settling.class.in_words();
    let time = |ns: u64| numbers::time(ns as f64);
    let costs = || {
        let [cold, warm] =
            [settling.cold_ns_per_request, settling.warm_ns_per_request].map(numbers::time);
        match cold == warm {
            true => format!("about {warm} per request, varying"),
            false => format!("{cold} per request at first, then {warm}"),
        }
    };
    match settling.class {
        WarmUpClass::Flat => class.to_owned(),
        WarmUpClass::NeverSettles => {
            format!("{class} within {}: {}", time(settling.observed_ns), costs())
        }
        _ => format!("{class} for {}: {}", time(settling.after_ns), costs()),
    }
}

fn is_flat(settling: &Settling) -> bool {
    settling.class == WarmUpClass::Flat
}

fn table(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let cells = summary.cells.iter().filter(|cell| cell.load == *load);
    let seen: Vec<(&Cell, &Settling)> =
        cells.filter_map(|cell| Some((cell, cell.settling.as_ref()?))).collect();
    if seen.iter().all(|(_, settling)| is_flat(settling)) {
        return None;
    }
    let costs = seen.iter().flat_map(|(_, one)| [one.cold_ns_per_request, one.warm_ns_per_request]);
    let unit = numbers::cost_unit(costs);
    let cost = |ns: f64| plain(numbers::three_digits(ns / unit.size));
    let column = |title: &str, right, drop_rank| Column {
        title: visible(title),
        right,
        drop_rank,
        brief: false,
    };
    let row = |(cell, settling): &(&Cell, &Settling)| {
        let Settling { class, observed_ns, after_ns, after_requests, .. } = **settling;
        let settled = class != WarmUpClass::NeverSettles;
        let after = match after_ns {
            _ if !settled => format!("> {}", numbers::time(observed_ns as f64)),
            0 => "at once".to_owned(),
            ns => numbers::time(ns as f64),
        };
        let requests = if settled { numbers::grouped(after_requests) } else { String::new() };
        let [cold, warm] = [settling.cold_ns_per_request, settling.warm_ns_per_request];
        Row {
            reference: summary.asked.is_reference(&cell.contender),
            cells: vec![
                plain(visible(&cell.contender)),
                plain(class.in_words().to_owned()),
                plain(after),
                plain(requests),
                cost(cold),
                cost(warm),
                plain(format!("{:.2}×", cold / warm)),
            ],
        }
    };
    // The warm-up is always measured per request, even if costs are per another operation.
    let unit_per = format!("{}/{}", unit.name, Operation::REQUESTS.one);
    Some(Table {
        title: visible(&format!("warm-up · {} · {load}", summary.asked.workload)),
        result: String::new(),
        columns: vec![
            column("contender", false, 0),
            column("cost", false, 0),
            column("steady after", true, 0),
            column("requests", true, 1),
            column(&format!("first second {unit_per}"), true, 0),
            column(&format!("then {unit_per}"), true, 0),
            column("first/then", true, 2),
        ],
        rows: seen.iter().map(row).collect(),
        notes: Vec::new(),
    })
}
