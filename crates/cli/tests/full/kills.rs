//! A race in duels, whose contenders are frozen most of the time, is killed at random moments, and so are its
//! supervisors: no process, no control group and no file of a contender remains, and no priority.

use crate::support::race::course::{Course, until};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, thread, time::Duration};

const KILLS: u64 = 25;
/// The race has not ended by itself within this time.
const LATEST: Duration = Duration::from_millis(3_000);
const CONTENDERS: &str = "'epoll', 'threads', 'cluster'";
const LOAD: &str = "connections = 16\n[[load]]\nconnections = 16\nrate = 2000";

/// Starts a race that lasts for more than [`LATEST`], and kills what `victim` returns at a random moment. If that
/// was not the race, it goes on without the contender, until it is interrupted.
fn kill_at_random(seed: u64, victim: impl Fn(&Course, u32) -> Option<u32>) {
    let course = Course::new();
    course.write_race(CONTENDERS, "50ms", LOAD);
    let usual = priority_of_session();
    // Not as the other tests start it, but as users do: with the highest priority, if that is permitted.
    let args = ["race", "race.toml", "--settle", "0s", "--rounds", "100", "--out", "out"];
    let mut race = course.started(course.regatta(&args));
    let mut random = SmallRng::seed_from_u64(seed);
    thread::sleep(LATEST.mul_f64(random.random_range(0.0..1.0)));
    if let Some(pid) = victim(&course, race.child.id()) {
        // It may have exited.
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
        let _ = kill_process(Pid::from_raw(race.child.id() as i32).unwrap(), Signal::INT);
    }
    until("the race has ended", || race.child.try_wait().unwrap().is_some());
    course.assert_nothing_left_soon();
    assert_eq!(priority_of_session(), usual);
}

/// The priority of this session over others (sched(7), autogroup); `None` where the kernel has none.
fn priority_of_session() -> Option<String> {
    fs::read_to_string("/proc/self/autogroup").ok()
}

#[test]
fn a_killed_race_leaves_nothing_frozen() {
    for seed in 0..KILLS {
        kill_at_random(seed, |_, race| Some(race));
    }
}

#[test]
fn a_killed_supervisor_leaves_nothing_frozen() {
    for seed in 0..KILLS {
        kill_at_random(seed, |course, race| {
            let is_supervisor = |pid: &u32| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.split(|byte| *byte == 0).nth(1) == Some(b"supervise")
            };
            // Without one, the race itself must end.
            let supervisors: Vec<u32> =
                course.processes().into_iter().filter(is_supervisor).collect();
            let nth = seed as usize % supervisors.len().max(1);
            supervisors.get(nth).copied().or(Some(race))
        });
    }
}

#[test]
fn a_race_is_ended_in_order_from_the_session_that_it_was_started_in() {
    let course = Course::new();
    course.write_race(CONTENDERS, "50ms", LOAD);
    let usual = priority_of_session();
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let out = format!("out-{}", signal.as_raw());
        let args = ["race", "race.toml", "--settle", "0s", "--rounds", "100", "--out", &out];
        let race = course.started(course.regatta(&args));
        let pid = Pid::from_raw(race.child.id() as i32).unwrap();
        until("rounds are stored", || course.path(&out).join("rounds.jsonl").exists());
        kill_process(pid, signal).unwrap();
        race.ended().with_status(130);
        course.assert_nothing_left();
        assert_eq!(priority_of_session(), usual);
    }
}
