//! A race in duels, whose contenders are frozen most of the time, is killed at random moments, and so are its
//! supervisors: no process, no control group and no file of a contender remains.

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
    let mut race = course.start(&["race.toml", "--rounds", "100", "--out", "out"]);
    let mut random = SmallRng::seed_from_u64(seed);
    thread::sleep(LATEST.mul_f64(random.random_range(0.0..1.0)));
    if let Some(pid) = victim(&course, race.child.id()) {
        // It may have exited.
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
        let _ = kill_process(Pid::from_raw(race.child.id() as i32).unwrap(), Signal::INT);
    }
    until("the race has ended", || race.child.try_wait().unwrap().is_some());
    course.assert_nothing_left_soon();
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
