//! Tests of all report formats for contenders with several roles.

use crate::common::{row, table, titles, words};
use regatta_record::{Cell, Estimate, Figure, RoleCost, Summary};
use regatta_report::{json, markdown, terminal};

/// The baseline under the first load.
fn cell(summary: &mut Summary) -> &mut Cell {
    let (load, name) = (summary.asked.loads[0], summary.asked.baseline.clone());
    let is_it = |cell: &&mut Cell| cell.load == load && cell.contender == name;
    summary.cells.iter_mut().find(is_it).expect("a cell")
}

/// `summary.json`, with a backend added to the baseline under the first load.
fn summary() -> Summary {
    let mut summary: Summary =
        serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary");
    let role = |name: &str, count, share: f64, cpus: &[u32]| RoleCost {
        name: name.into(),
        count,
        cpus: cpus.to_vec(),
        cost_not_known: false,
        cost_ns_per_request: Some(Estimate {
            mean: 10_000.0 * share,
            low: 9_200.0 * share,
            high: 10_800.0 * share,
        }),
        share: Some(share),
        busy: Some(share / 2.0),
        memory_bytes: Some(3 << 20),
    };
    cell(&mut summary).roles =
        vec![role("server", 1, 0.25, &[0]), role("\u{1b}<app>", 2, 0.75, &[1, 2])];
    summary
}

#[test]
fn each_role_has_a_row_with_its_cost() {
    let mut summary = summary();
    let (load, name) = (summary.asked.loads[0], &summary.asked.baseline.clone());
    let title = format!("cost by role · {} · {load}", summary.asked.workload);
    let text = terminal(&summary, 200, false);
    let table = table(&text, &title);
    assert_eq!(titles(&table), "contender role processes cost share CPUs busy memory / µs/req");
    assert_eq!(
        words(row(&table, name)),
        format!("{name} server 1 2.5 [2.3–2.7] 25% 0 0.12 3.00 MiB")
    );
    let second = format!("{name} \\u{{1b}}<app> 2 7.5 [6.9–8.1] 75% 1,2 0.38 3.00 MiB");
    assert_eq!(words(table[4]), second);
    assert_eq!(table.len(), 5, "no other contender has roles");
    assert!(markdown(&summary).contains(&format!("### {title}")));
    let mut read: Summary = serde_json::from_str(&json(&summary)).expect("what was written");
    assert_eq!(cell(&mut read).roles, cell(&mut summary).roles);
}

#[test]
fn a_void_cost_is_void_for_each_role_and_without_roles_there_is_no_table() {
    let mut summary = summary();
    cell(&mut summary).verdict.void = vec![Figure::Cost];
    let text = terminal(&summary, 200, false);
    assert!(text.contains("(2.5 [2.3–2.7])"), "{text}");
    cell(&mut summary).roles.clear();
    for text in [terminal(&summary, 200, false), markdown(&summary)] {
        assert!(!text.contains("cost by role"), "{text}");
    }
}
