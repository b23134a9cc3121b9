//! Wrong answers: from a cache, and surplus ones.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::truth::stage::turn;
use regatta_record::{Kind, twin_name};

const HONEST: &str = "honest";

impl Finding {
    /// The finding for a liar that must be disqualified with this text in the exchange.
    pub(super) fn disqualified(
        raced: &Raced,
        liar: &'static str,
        lie: &'static str,
        text: &str,
    ) -> Finding {
        let cell = raced.cell(liar);
        let verdict = &cell.verdict;
        Finding {
            lie,
            verdict: verdict.kind().name().to_owned(),
            evidence: verdict.because().clone(),
            is_named: verdict.kind() == Kind::Disqualified && verdict.because().contains(text),
            is_above: cell.band.is_some() || cell.relation.is_some(),
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_surplus_answer_under_churn_disqualifies() {
    let Some(turn) = turn() else { return };
    let contenders = [Contender::liar(HONEST, "honest"), Contender::liar("adds", "adds")];
    let race = Race {
        workload: "double",
        contenders: &contenders,
        load: "connections = 2\nchurn = true",
        rounds: 3,
        settle: "0s",
    };
    assert_named(|| {
        let raced = race.run(&turn, folder().path());
        let mut findings = Findings::of_honest(&raced, &[HONEST, &twin_name(HONEST)]);
        let lie = "surplus bytes after the reply, under churn";
        findings.liars = vec![Finding::disqualified(&raced, "adds", lie, "received 0\\n")];
        findings
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_hash_from_a_cache_disqualifies() {
    let Some(turn) = turn() else { return };
    let contenders = [
        Contender::regatta(HONEST, "serve hash --file {file} --model epoll"),
        Contender::example("caches", "slow_hash", &["caches"]),
    ];
    let race = Race {
        workload: "hash",
        contenders: &contenders,
        load: "connections = 2\nn = 1",
        rounds: 3,
        settle: "0s",
    };
    assert_named(|| {
        let raced = race.run(&turn, folder().path());
        let mut findings = Findings::of_honest(&raced, &[HONEST, &twin_name(HONEST)]);
        let lie = "answers hash from a cache";
        findings.liars = vec![Finding::disqualified(&raced, "caches", lie, "n=1&salt=")];
        findings
    });
}
