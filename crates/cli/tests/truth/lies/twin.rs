//! A contender whose twin has another cost than itself.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, folder},
};
use crate::stage::{is_full, turn};
use regatta_record::Relation;

/// Returns the lie, the liar's arguments, and the lowest noise floor that is correct. In the short form
/// the difference is so large that no machine can hide it.
fn lie() -> (&'static str, &'static str, f64) {
    match is_full() {
        true => ("a twin that always costs 3.5% more", "spoils-twin 1.035", 0.028),
        false => ("a twin that always costs twice as much", "spoils-twin 2", 0.5),
    }
}

#[test]
fn a_twin_with_a_constant_difference_raises_the_noise_floor() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let events = folder.path().join("out/events.jsonl");
        // The first has a twin.
        let contenders = [
            Contender::liar("spoiler", lie().1).with_env("LIAR_EVENTS", events),
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
            matches!(relation, Some(Relation::Cheaper | Relation::Costlier))
        };
        let percent = floor.map_or(f64::NAN, |floor| floor * 100.0);
        findings.liars = vec![Finding {
            lie: lie().0,
            verdict: format!("noise floor ±{percent:.1}%"),
            evidence: doubt.cloned().unwrap_or_default(),
            is_named: floor.is_some_and(|floor| floor >= lie().2)
                && doubt.is_some()
                && !honest.iter().any(differs),
            is_above: false,
        }];
        findings
    });
}
