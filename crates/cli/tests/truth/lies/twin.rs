//! One whose twin is another than itself.

use super::{
    Findings, Told, assert_named,
    race::{Contender, Race, folder},
};
use crate::stage::{is_full, turn};
use regatta_record::Relation;

/// The lie, the liar, and the least floor that is right. In the short form no machine can hide it.
fn lie() -> (&'static str, &'static str, f64) {
    match is_full() {
        true => ("a twin that costs 3% more for good", "spoils-twin 1.035", 0.028),
        false => ("a twin that costs twice as much for good", "spoils-twin 2", 0.5),
    }
}

#[test]
fn a_twin_that_is_off_for_good_is_the_floor() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let events = folder.path().join("out/events.jsonl");
        // The first is entered twice.
        let contenders = [
            Contender::liar("spoiler", lie().1).told("LIAR_EVENTS", events),
            Contender::liar("honest", "honest"),
            Contender::liar("near", "honest 1.02"),
        ];
        let race = Race {
            workload: "double",
            contenders: &contenders,
            load: "connections = 2",
            rounds: [6, 10],
            settle: ["0s", "0s"],
        };
        let raced = race.run(&turn, folder.path());
        let honest = ["honest", "near"];
        let mut findings = Findings::of_honest(&raced, &honest);
        let floor = raced.summary.noise_floor;
        let doubt = raced.doubt("spoiler", "and its twin differ");
        let differs = |name: &&str| {
            let relation = raced.cell(name).relation;
            matches!(relation, Some(Relation::Cheaper | Relation::Dearer))
        };
        let percent = floor.map_or(f64::NAN, |floor| floor * 100.0);
        findings.told = vec![Told {
            lie: lie().0,
            verdict: format!("noise floor ±{percent:.1}%"),
            certain: doubt.cloned().unwrap_or_default(),
            is_named: floor.is_some_and(|floor| floor >= lie().2)
                && doubt.is_some()
                && !honest.iter().any(differs),
            is_above: false,
        }];
        findings
    });
}
