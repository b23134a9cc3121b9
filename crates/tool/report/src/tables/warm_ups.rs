//! Warm-ups: a table for each load under which a contender was not steady from the start, or a sentence
//! that all were.

use crate::{
    numbers,
    table::{Column, Note, Row, Table, visible},
    tables::columns::plain,
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
    // In duels, only a direction is the contender's; the machine changes all costs.
    let is_its_own = |cell: &&Cell, settling: &Settling| {
        cell.lives == 0 || settling.class != WarmUpClass::NeverSettles
    };
    let seen = cells.filter_map(|cell| Some((cell, cell.settling.as_ref()?)));
    let seen = seen.filter(|(cell, settling)| is_its_own(cell, settling));
    let (flat, mut seen): (Vec<(&Cell, &Settling)>, Vec<_>) =
        seen.partition(|(_, settling)| is_flat(settling));
    if seen.is_empty() {
        return None;
    }
    seen.sort_by_key(|(cell, _)| summary.asked.is_reference(&cell.contender));
    let costs = seen.iter().flat_map(|(_, one)| [one.cold_ns_per_request, one.warm_ns_per_request]);
    let unit = numbers::cost_unit(costs);
    let cost = |ns: f64| plain(numbers::three_digits(ns / unit.size));
    let nanoseconds = seen.iter().map(|(_, one)| one.observed_ns.max(one.after_ns) as f64);
    let time = numbers::seconds_unit(nanoseconds.map(|ns| ns / 1e9));
    let in_time = |ns: u64| numbers::three_digits(ns as f64 / 1e9 / time.size);
    let row = |(cell, settling): &(&Cell, &Settling)| {
        let Settling { class, observed_ns, after_ns, after_requests, .. } = **settling;
        let settled = class != WarmUpClass::NeverSettles;
        let after = match after_ns {
            _ if !settled => format!("> {}", in_time(observed_ns)),
            0 => "at once".to_owned(),
            ns => in_time(ns),
        };
        let requests = if settled { numbers::grouped(after_requests) } else { String::new() };
        let [cold, warm] = [settling.cold_ns_per_request, settling.warm_ns_per_request];
        Row::plain(
            summary.asked.is_reference(&cell.contender),
            vec![
                plain(visible(&cell.contender)),
                plain(class.in_words().to_owned()),
                plain(after),
                plain(requests),
                cost(cold),
                cost(warm),
                plain(format!("{:.2}", cold / warm)),
            ],
        )
    };
    // The warm-up is always measured per request, even if costs are per another operation.
    let unit_per = format!("{}/{}", unit.name, Operation::REQUESTS.one);
    let columns = vec![
        Column::left("contender"),
        Column::left("warm-up").titled("cost"),
        Column::right("after", 0).titled("steady after").unit(time.name),
        Column::right("requests", 1),
        Column::right("first", 0).titled("first second").unit(&unit_per),
        Column::right("then", 0).unit(&unit_per),
        Column::right("ratio", 2).titled("first/then").unit("×"),
    ];
    let title = visible(&format!("warm-up · {} · {load}", summary.asked.workload));
    let table = Table::plain(title, columns, seen.iter().map(row).collect());
    let names: Vec<String> = flat.iter().map(|(cell, _)| visible(&cell.contender)).collect();
    let steady = (!names.is_empty()).then(|| Note {
        names: names.join(", "),
        kind: "steady",
        because: "the cost was steady from the start".to_owned(),
        bad: false,
    });
    Some(Table { notes: steady.into_iter().collect(), ..table })
}
