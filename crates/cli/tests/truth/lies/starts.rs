//! What differs from start to start, or is seen at every start: an uneven cost, work that a daemon does,
//! answers to requests that have not come.

use super::{
    Findings, Told, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::{
    stage::{is_full, turn},
    support::until,
};
use regatta_record::{Figure, Kind, twin_name};
use std::{
    path::Path,
    process::{Child, Command},
};

const HONEST: &str = "honest";

/// The lie of the uneven one, and by how much its starts differ. In the short form no machine can hide it.
fn uneven_lie() -> (&'static str, &'static str) {
    match is_full() {
        true => ("every third start costs 20% more", "uneven 1.2"),
        false => ("every third start costs twice as much", "uneven 2"),
    }
}

/// A daemon outside of the race; killed and reaped when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(program: &Path, socket: &Path) -> Daemon {
        let daemon = Command::new(program).arg("daemon").arg(socket).spawn().unwrap();
        // Dropped in a panic, too.
        let daemon = Daemon(daemon);
        until("the daemon listens", || socket.exists());
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_starts_show_is_named() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let socket = folder.path().join("daemon");
        let words = [socket.to_str().expect("a path in UTF-8"), "all"];
        let handed_over = Contender::example("handed-over", "handed_over", &words);
        let _daemon = Daemon::start(handed_over.program(), &socket);
        let starts = folder.path().join("starts");
        let contenders = [
            Contender::liar(HONEST, "honest"),
            Contender::liar("also-honest", "honest"),
            Contender::liar("uneven", uneven_lie().1).told("LIAR_STARTS", starts),
            Contender::liar("hasty", "hasty"),
            handed_over,
        ];
        let race = Race {
            workload: "double",
            contenders: &contenders,
            load: "connections = 2",
            rounds: [12, 12],
            settle: ["0s", "0s"],
        };
        let raced = race.run(&turn, folder.path());
        let honest = [HONEST, &twin_name(HONEST), "also-honest"];
        let mut findings = Findings::of_honest(&raced, &honest);
        findings.told = vec![
            uneven(&raced, &honest),
            void(&raced, &honest),
            Told::disqualified(&raced, "hasty", "answers before it has read the request", EARLY),
        ];
        findings
    });
}

const EARLY: &str = "the last byte of the request had not been sent";

fn uneven(raced: &Raced, honest: &[&str]) -> Told {
    let doubt = raced.doubt("uneven", "differs between starts");
    Told {
        lie: uneven_lie().0,
        verdict: match doubt {
            Some(_) => "cost differs between starts".to_owned(),
            None => raced.cell("uneven").verdict.kind.name().to_owned(),
        },
        certain: doubt.cloned().unwrap_or_else(|| format!("{:.0?} µs", raced.costs("uneven"))),
        is_named: doubt.is_some(),
        is_above: raced.is_above("uneven", honest),
    }
}

fn void(raced: &Raced, honest: &[&str]) -> Told {
    let cell = raced.cell("handed-over");
    let verdict = &cell.verdict;
    let is_named = verdict.kind == Kind::ServerNotObserved
        && verdict.voids(Figure::Cost)
        && verdict.because.contains("(handed_over), which is not one of handed-over's");
    Told {
        lie: "work handed to a daemon",
        verdict: verdict.kind.name().to_owned(),
        certain: verdict.because.clone(),
        is_named: is_named && cell.band.is_none() && cell.relation.is_none(),
        is_above: raced.is_above("handed-over", honest),
    }
}
