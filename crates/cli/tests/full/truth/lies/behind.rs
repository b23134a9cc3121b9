//! A contender that leaves the machine slower after its end: an accomplice outside the race then uses
//! the CPU that the next contender gets. In duels all contenders stop at once, so there is no next one, and
//! nobody pays.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::truth::stage::turn;
use regatta_record::twin_name;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    io::Read,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const HONEST: &str = "honest";

/// How long the accomplice works each time.
const WORKS: Duration = Duration::from_millis(1_500);

/// A thread of this test, stopped and joined when dropped.
struct Accomplice {
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Accomplice {
    fn start(socket: &Path, cpu: u32) -> Accomplice {
        let listener = UnixListener::bind(socket).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set(cpu as usize);
            sched_setaffinity(None, &only).unwrap();
            for contender in listener.incoming() {
                // The contender never writes, so this returns when it has exited.
                let _ = contender.unwrap().read(&mut [0]);
                let began = Instant::now();
                while !over.load(Relaxed) && began.elapsed() < WORKS {}
                if over.load(Relaxed) {
                    return;
                }
            }
        });
        Accomplice { socket: socket.to_owned(), is_over, thread: Some(thread) }
    }
}

impl Drop for Accomplice {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        // Wakes the thread if it waits for a contender.
        let _ = UnixStream::connect(&self.socket);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_contender_that_leaves_work_behind_is_named_and_no_other_contender_pays() {
    let Some(turn) = turn() else { return };
    assert_named(|| {
        let folder = folder();
        let socket = folder.path().join("accomplice");
        let _accomplice = Accomplice::start(&socket, turn.server_cpu);
        let contenders = [
            Contender::liar(HONEST, "honest"),
            Contender::liar("also-honest", "honest"),
            Contender::liar("litters", "litters").with_env("LIAR_ACCOMPLICE", socket),
        ];
        let race = Race {
            workload: "double",
            contenders: &contenders,
            load: "connections = 2",
            rounds: 12,
            settle: "0s",
        };
        let raced = race.run_in("rounds", &turn, folder.path());
        let honest = [HONEST, &twin_name(HONEST), "also-honest"];
        let mut findings = findings(&raced, &honest);
        let doubt = raced.doubt("litters", "leaves work behind");
        findings.liars = vec![Finding {
            lie: "leaves the machine slower after its end",
            verdict: match doubt {
                Some(_) => "leaves work behind".to_owned(),
                None => raced.cell("litters").verdict.kind().name().to_owned(),
            },
            evidence: doubt.cloned().unwrap_or_default(),
            is_named: doubt.is_some(),
            is_above: raced.is_above("litters", &honest),
        }];
        let duel = race.run(&turn, folder.path());
        let in_duels = self::findings(&duel, &honest);
        findings.liars.push(Finding {
            lie: "the same in duels",
            verdict: "nobody pays".to_owned(),
            evidence: format!("it costs {} the honest one", duel.ratio("litters")),
            is_named: in_duels.honest.iter().all(|(_, accused)| accused.is_none()),
            is_above: duel.is_above("litters", &honest),
        });
        findings
    });
}

/// The honest contenders that are accused, or that pay: another program took their CPU.
fn findings(raced: &Raced, honest: &[&str]) -> Findings {
    let mut findings = Findings::of_honest(raced, honest);
    for (name, accused) in &mut findings.honest {
        let because = &raced.cell(name).verdict.because();
        if because.contains("took the server's CPU") {
            *accused = Some(format!("it pays: {because}"));
        }
    }
    findings
}
