//! Lies that differ between starts or appear at every start: an uneven cost, work done by a daemon, and
//! replies to requests that have not arrived.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::{support::until, truth::stage::turn};
use regatta_record::{Figure, Kind, twin_name};
use regatta_testkit::child::Killed;
use std::{path::Path, process::Command};

const HONEST: &str = "honest";

/// Starts a daemon outside the race.
fn daemon(program: &Path, socket: &Path) -> Killed {
    let daemon = Killed::start(Command::new(program).arg("daemon").arg(socket));
    until("the daemon listens", || socket.exists());
    daemon
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn lies_at_the_start_are_named() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let socket = folder.path().join("daemon");
        let words = [socket.to_str().expect("a path in UTF-8"), "all"];
        let handed_over = Contender::example("handed-over", "handed_over", &words);
        let _daemon = daemon(handed_over.program(), &socket);
        let starts = folder.path().join("starts");
        let contenders = [
            Contender::liar(HONEST, "honest"),
            Contender::liar("also-honest", "honest"),
            Contender::liar("uneven", "uneven 1.2").with_env("LIAR_STARTS", starts),
            Contender::liar("hasty", "hasty"),
            handed_over,
        ];
        let race = Race {
            workload: "double",
            contenders: &contenders,
            load: "connections = 2",
            rounds: 12,
            settle: "0s",
        };
        let raced = race.run(&turn, folder.path());
        let honest = [HONEST, &twin_name(HONEST), "also-honest"];
        let mut findings = Findings::of_honest(&raced, &honest);
        findings.liars = vec![
            uneven(&raced, &honest),
            void(&raced, &honest),
            Finding::disqualified(&raced, "hasty", "answers before it has read the request", EARLY),
        ];
        findings
    });
}

const EARLY: &str = "the last byte of the request had not been sent";

fn uneven(raced: &Raced, honest: &[&str]) -> Finding {
    let doubt = raced.doubt("uneven", "differs between starts");
    Finding {
        lie: "every third start costs 20% more",
        verdict: match doubt {
            Some(_) => "cost differs between starts".to_owned(),
            None => raced.cell("uneven").verdict.kind().name().to_owned(),
        },
        evidence: doubt.cloned().unwrap_or_else(|| format!("{:.0?} µs", raced.costs("uneven"))),
        is_named: doubt.is_some(),
        is_above: raced.is_above("uneven", honest),
    }
}

fn void(raced: &Raced, honest: &[&str]) -> Finding {
    let cell = raced.cell("handed-over");
    let verdict = &cell.verdict;
    let is_named = verdict.kind() == Kind::ServerNotObserved
        && verdict.voids(Figure::Cost)
        && verdict.because().contains("(handed_over), which is not one of handed-over's");
    Finding {
        lie: "work handed to a daemon",
        verdict: verdict.kind().name().to_owned(),
        evidence: verdict.because().clone(),
        is_named: is_named && cell.band.is_none() && cell.relation.is_none(),
        is_above: raced.is_above("handed-over", honest),
    }
}
