//! Shared by the tests of the page: stored results.

use regatta_record::{Round, Summary};
use regatta_report::{table::Table, view::View};
use std::{fs, path::Path};

/// A stored summary among the fixtures of `report`.
pub fn summary(name: &str) -> Summary {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests");
    let text = fs::read_to_string(folder.join(name)).expect("a fixture");
    serde_json::from_str(&text).expect("the fixture is a summary")
}

/// A real race: five rounds of a few contenders, with their histograms.
pub fn race() -> (Summary, Vec<Round>) {
    let summary = include_str!("../../race/summary.json");
    let rounds = include_str!("../../race/rounds.jsonl").lines();
    (
        serde_json::from_str(summary).expect("the fixture is a summary"),
        rounds.map(|line| serde_json::from_str(line).expect("a round")).collect(),
    )
}

/// All tables of a view except those that the page has in another form.
pub fn all_tables(view: &View) -> impl Iterator<Item = &Table> {
    view.gate.iter().chain(view.raced()).chain(view.details()).chain(&view.scaling)
}
