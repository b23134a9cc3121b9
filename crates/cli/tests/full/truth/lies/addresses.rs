//! A contender that is fast only for clients at 127.0.0.1, the address of load generators: it gains nothing,
//! because loads come from other addresses, and in rounds the observation before them tries that address, too.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::truth::stage::turn;
use regatta_record::twin_name;

const HONEST: &str = "honest";

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_contender_that_favours_a_source_address_gains_nothing_and_is_named() {
    let Some(turn) = turn() else { return };
    let contenders = [Contender::liar(HONEST, "honest"), Contender::liar("favours", "favours")];
    let race = Race {
        workload: "double",
        contenders: &contenders,
        load: "connections = 2",
        rounds: 5,
        settle: "10s",
    };
    assert_named(|| {
        let raced = race.run_in("rounds", &turn, folder().path());
        let mut findings = Findings::of_honest(&raced, &[HONEST, &twin_name(HONEST)]);
        let doubt = raced.doubt("favours", "treats source addresses differently");
        let gains_nothing = |raced: &Raced| {
            let ratio = raced.cell("favours").ratio_to_baseline;
            ratio.is_none_or(|ratio| (0.9..1.1).contains(&ratio.mean))
        };
        let why = doubt.cloned().unwrap_or_default();
        findings.liars = vec![Finding {
            lie: "fast only for clients at 127.0.0.1",
            verdict: match doubt {
                Some(_) => "treats source addresses differently".to_owned(),
                None => raced.cell("favours").verdict.kind().name().to_owned(),
            },
            evidence: format!("costs {} the honest one; {why}", raced.ratio("favours")),
            is_named: doubt.is_some() && gains_nothing(&raced),
            is_above: raced.is_above("favours", &[HONEST]),
        }];
        let duel = race.run(&turn, folder().path());
        findings.liars.push(Finding {
            lie: "the same in duels",
            verdict: "gains nothing".to_owned(),
            evidence: format!("costs {} the honest one", duel.ratio("favours")),
            is_named: gains_nothing(&duel),
            is_above: duel.is_above("favours", &[HONEST]),
        });
        findings
    });
}
