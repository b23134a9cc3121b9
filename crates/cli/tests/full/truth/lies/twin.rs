//! A contender whose twin has another cost than itself.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, folder},
};
use crate::truth::stage::turn;
use regatta_record::Relation;

/// The lowest noise floor that is correct, given a twin that costs 3.5% more.
const FLOOR: f64 = 0.028;

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_twin_with_a_constant_difference_raises_the_noise_floor() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let events = folder.path().join("out/events.jsonl");
        // The first has a twin.
        let contenders = [
            Contender::liar("spoiler", "spoils-twin 1.035").with_env("LIAR_EVENTS", events),
            Contender::liar("honest", "honest"),
            Contender::liar("near", "honest 1.02"),
        ];
        let race = Race {
            workload: "double",
            contenders: &contenders,
            load: "connections = 2",
            rounds: 10,
            settle: "0s",
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
            lie: "a twin that always costs 3.5% more",
            verdict: format!("noise floor ±{percent:.1}%"),
            evidence: doubt.cloned().unwrap_or_default(),
            is_named: floor.is_some_and(|floor| floor >= FLOOR)
                && doubt.is_some()
                && !honest.iter().any(differs),
            is_above: false,
        }];
        findings
    });
}
