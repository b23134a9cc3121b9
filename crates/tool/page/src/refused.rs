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
    let asked = &summary.asked;
    // What each contender did not show, at which loads.
    let mut each: Vec<(String, Kind, String, Vec<String>)> = Vec::new();
    let is_shown = |cell: &&Cell| is_refused(cell) && !asked.is_skipped(&cell.contender);
    for cell in summary.cells.iter().filter(is_shown) {
        let (kind, because) = (cell.verdict.kind(), visible(&cell.verdict.first().to_string()));
        let (name, load) = (visible(&cell.contender), visible(&cell.load.to_string()));
        match each.iter_mut().find(|one| (&one.0, one.1, &one.2) == (&name, kind, &because)) {
            Some((.., loads)) => loads.push(load),
            None => each.push((name, kind, because, vec![load])),
        }
    }
    let mut all: Vec<Refused> = Vec::new();
    for (name, kind, because, mut loads) in each {
        if loads.len() == asked.loads.len() {
            loads.clear();
        }
        let bad = matches!(kind, Kind::Disqualified | Kind::Failed);
        let (kind, because) = (kind.name().to_owned(), cut(&because));
        let same =
            |one: &&mut Refused| one.kind == kind && one.because == because && one.loads == loads;
        match all.iter_mut().find(same) {
            Some(known) => known.names.push(name),
            None => all.push(Refused { names: vec![name], kind, loads, because, bad }),
        }
    }
    all.sort_by_key(|one| !one.bad);
    for (names, why) in asked.skipped() {
        all.push(Refused {
            names: names.iter().map(|name| visible(name)).collect(),
            kind: "not installed".to_owned(),
            loads: vec![],
            because: cut(&visible(&why)),
            bad: false,
        });
    }
    all.extend(asked.left_out.iter().map(|why| Refused {
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
    // The answers say that it was not raced yet.
    if cell.verdict.kind() == Kind::Skipped {
        return false;
    }
    let figure = if cell.load.beside.is_some() { Figure::Latency } else { Figure::Cost };
    cell.verdict.voids(figure)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(REASON) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Verdict;

    #[test]
    fn each_contender_is_named_with_the_loads_of_its_own_reason() {
        let text = include_str!("../../report/tests/summary.json");
        let mut summary: Summary = serde_json::from_str(text).expect("the fixture is a summary");
        let loads: Vec<String> = summary.asked.loads.iter().map(|load| load.to_string()).collect();
        for cell in &mut summary.cells {
            let nth = summary.asked.loads.iter().position(|load| *load == cell.load).unwrap();
            let at: &[usize] = match cell.contender.as_str() {
                "poll" => &[0],
                "uring" => &[1],
                "node" => &[1, 2],
                "threads" | "percore" => &[0, 1, 2],
                _ => &[],
            };
            if at.contains(&nth) {
                cell.verdict = Verdict {
                    void: vec![Figure::Cost],
                    ..Verdict::new(Kind::Failed, "replies are missing: timeout 1")
                };
            }
        }
        let found: Vec<(Vec<String>, Vec<String>)> = refused(&summary)
            .into_iter()
            .filter(|one| one.because.starts_with("replies are missing"))
            .map(|one| (one.names, one.loads))
            .collect();
        let of = |names: &[&str], at: &[usize]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            (names, at.iter().map(|nth| loads[*nth].clone()).collect())
        };
        let expected = [
            of(&["percore", "threads"], &[]),
            of(&["poll"], &[0]),
            of(&["uring"], &[1]),
            of(&["node"], &[1, 2]),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for one in expected {
            assert!(found.contains(&one), "{one:?} in {found:?}");
        }
    }
}
