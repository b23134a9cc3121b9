//! The doubts about a race, with shorter lists of cells.

use crate::table::visible;
use regatta_record::Summary;

/// Names of contenders in a list; if there are more, they are counted.
const NAMED: usize = 4;

/// The doubts, one sentence each. In a list such as `a at 64 conn and b at 64 conn`, the load is named
/// once, and many contenders are counted.
pub fn doubts(summary: &Summary) -> Vec<String> {
    // In duels a line of the heading has them.
    let in_rounds = summary.precision.iter().filter(|_| summary.duels.is_empty());
    let missing = in_rounds.flat_map(|precision| &precision.missing);
    let of_gate = summary.gate.iter().flat_map(|gate| &gate.doubts);
    let all = missing.chain(of_gate).chain(&summary.doubts);
    all.map(|doubt| visible(&shorter(summary, doubt))).collect()
}

/// Shortens the list of cells at the start of a doubt, if it has one.
fn shorter(summary: &Summary, doubt: &str) -> String {
    let cells: Vec<(&str, String)> =
        summary.cells.iter().map(|cell| (cell.contender.as_str(), cell.load.to_string())).collect();
    let mut rest = doubt;
    let mut listed: Vec<(String, Vec<&str>)> = Vec::new();
    loop {
        // The longest match, because a load's text may be the start of another's.
        let found = cells
            .iter()
            .filter_map(|(name, load)| {
                let after = rest.strip_prefix(name)?.strip_prefix(" at ")?.strip_prefix(&**load)?;
                let ends = after.starts_with([' ', ':']);
                ends.then_some((*name, load, after))
            })
            .min_by_key(|(.., after)| after.len());
        let Some((name, load, after)) = found else { return doubt.to_owned() };
        match listed.iter_mut().find(|(other, _)| other == load) {
            Some((_, names)) => names.push(name),
            None => listed.push((load.clone(), vec![name])),
        }
        match after.strip_prefix(" and ") {
            Some(more) => rest = more,
            None => {
                rest = after;
                break;
            }
        }
    }
    let cells: usize = listed.iter().map(|(_, names)| names.len()).sum();
    let list = match &listed[..] {
        [(load, names)] => format!("{} at {load}", named(names)),
        [..] if cells <= NAMED => {
            let each = listed.iter().map(|(load, names)| format!("{} at {load}", named(names)));
            each.collect::<Vec<_>>().join("; ")
        }
        [..] => {
            let mut names: Vec<&str> = Vec::new();
            let all = listed.iter().flat_map(|(_, names)| names);
            all.for_each(|name| {
                if !names.contains(name) {
                    names.push(name)
                }
            });
            format!("{} ({cells} cells at {} loads)", named(&names), listed.len())
        }
    };
    format!("{list}{rest}")
}

fn named(names: &[&str]) -> String {
    match names {
        [only] => (*only).to_owned(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} contenders", names.len()),
    }
}
