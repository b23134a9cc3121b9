//! One whose twin is another than itself.

use super::{
    Findings, Told, assert_named,
    race::{Contender, Race, folder},
};
use crate::stage::turn;
use regatta_record::Relation;

#[test]
fn a_twin_that_is_off_for_good_is_the_floor() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let events = folder.path().join("out/events.jsonl");
        // The first is entered twice.
        let contenders = [
            Contender::liar("spoiler", "spoils-twin").told("LIAR_EVENTS", events),
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
            lie: "a twin that costs 3% more for good",
            verdict: format!("noise floor ±{percent:.1}%"),
            certain: doubt.cloned().unwrap_or_default(),
            is_named: floor.is_some_and(|floor| floor >= 0.028)
                && doubt.is_some()
                && !honest.iter().any(differs),
            is_above: false,
        }];
        findings
    });
}
