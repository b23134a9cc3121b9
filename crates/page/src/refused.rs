//! What a race did not measure, and why.

use regatta_record::{Cell, Figure, Kind, Summary};
use regatta_report::table::visible;
use serde::Serialize;

/// Maximum length of a reason, in characters. The remarks under the tables have the whole text.
const REASON: usize = 200;

/// Contenders without a cost for the same reason.
#[derive(Debug, PartialEq, Serialize)]
pub struct Refused {
    /// Their names.
    names: Vec<String>,
    /// The verdict.
    kind: String,
    /// The loads, if it concerns only some.
    loads: Vec<String>,
    /// Why.
    because: String,
    /// Whether the contender is at fault.
    bad: bool,
}

/// Contenders that were disqualified or failed, whose cost is void, or that are not installed; and loads
/// that the machine cannot produce. In this order.
pub fn refused(summary: &Summary) -> Vec<Refused> {
    let mut all: Vec<Refused> = Vec::new();
    let absent = |name: &str| {
        summary.asked.entries.iter().any(|entry| entry.name == name && entry.skipped.is_some())
    };
    for cell in summary.cells.iter().filter(|cell| is_refused(cell) && !absent(&cell.contender)) {
        let (kind, because) = cell.verdict.findings()[0];
        let (name, load) = (visible(&cell.contender), visible(&cell.load.to_string()));
        let because = cut(&visible(because));
        let same = |one: &&mut Refused| one.kind == kind.name() && one.because == because;
        let known = match all.iter_mut().find(same) {
            Some(known) => known,
            None => {
                let bad = matches!(kind, Kind::Disqualified | Kind::Failed);
                all.push(Refused {
                    names: vec![],
                    kind: kind.name().to_owned(),
                    loads: vec![],
                    because,
                    bad,
                });
                all.last_mut().expect("it was just added")
            }
        };
        if !known.names.contains(&name) {
            known.names.push(name);
        }
        if !known.loads.contains(&load) {
            known.loads.push(load);
        }
    }
    for one in &mut all {
        if one.loads.len() == summary.asked.loads.len() {
            one.loads.clear();
        }
    }
    all.sort_by_key(|one| !one.bad);
    for entry in &summary.asked.entries {
        let Some(why) = &entry.skipped else { continue };
        all.push(Refused {
            names: vec![visible(&entry.name)],
            kind: "not installed".to_owned(),
            loads: vec![],
            because: cut(&visible(why)),
            bad: false,
        });
    }
    all.extend(summary.asked.left_out.iter().map(|why| Refused {
        names: vec![],
        kind: "load left out".to_owned(),
        loads: vec![],
        because: cut(&visible(why)),
        bad: false,
    }));
    all
}

/// Whether a cell has no valid cost. Beside another load no cell has one, by design, so there it is one
/// without a valid latency.
fn is_refused(cell: &Cell) -> bool {
    let figure = if cell.load.beside.is_some() { Figure::Latency } else { Figure::Cost };
    cell.verdict.voids(figure)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(REASON) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
