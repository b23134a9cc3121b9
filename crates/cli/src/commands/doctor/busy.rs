//! CPU use of other processes, from two readings of every process's CPU time.

use super::check::{Check, Mark};
use regatta_host::cpu_ticks;
use std::{
    collections::HashMap,
    fs, thread,
    time::{Duration, Instant},
};

/// Time between the two readings; at 100 ticks a second, the resolution is 3% of a CPU.
const SAMPLE: Duration = Duration::from_millis(300);
/// Number of processes that are named.
const NAMED: usize = 3;
/// Hundredths of a CPU below which a machine counts as quiet.
const QUIET: u64 = 10;
/// Hundredths of a CPU from which a server or load loses a large share.
const MUCH: u64 = 50;

/// Samples and judges.
pub fn checks() -> Vec<Check> {
    let (before, at) = (processes(), Instant::now());
    thread::sleep(SAMPLE);
    let (after, seconds) = (processes(), at.elapsed().as_secs_f64());
    let per_tick = 100.0 / (rustix::param::clock_ticks_per_second() as f64 * seconds);
    let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let average = average.split(' ').next().unwrap_or_default();
    vec![busy(&users(&before, &after, per_tick), average)]
}

/// The name and CPU time, in ticks, of each process by its id.
type Processes = HashMap<u32, (String, u64)>;

/// Every process except this one.
fn processes() -> Processes {
    let mut all = cpu_ticks();
    all.remove(&std::process::id());
    all
}

/// Name, without control characters, and CPU use of each process between two readings, in hundredths of a CPU, largest
/// first. Those that used none are left out. A process that started in between counts from its start.
fn users(before: &Processes, after: &Processes, per_tick: f64) -> Vec<(String, u64)> {
    let mut users: Vec<(String, u64)> = after
        .iter()
        .map(|(pid, (name, ticks))| {
            let earlier = before.get(pid).map_or(0, |(_, ticks)| *ticks);
            let used = ticks.saturating_sub(earlier) as f64 * per_tick;
            (name.chars().filter(|c| !c.is_control()).collect(), used.round() as u64)
        })
        .filter(|(_, used)| *used > 0)
        .collect();
    users.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    users
}

fn busy(users: &[(String, u64)], load_average: &str) -> Check {
    let total: u64 = users.iter().map(|(_, used)| used).sum();
    let named: Vec<String> =
        users.iter().take(NAMED).map(|(name, used)| format!("{name} {used}%")).collect();
    let named = named.join(", ");
    let found = format!("other processes use {total}% of a CPU, load average {load_average}");
    let check = Check::ok("other-work", found);
    let mark = match total {
        ..QUIET => return check,
        QUIET..MUCH => Mark::Note,
        _ => Mark::Warn,
    };
    check.marked(
        mark,
        format!("{named}: they take CPU and cache from server and load, unevenly over rounds."),
        "Stop them, or wait until they finish.",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn counts_only_cpu_use_between_the_readings() {
        let of = |list: &[(u32, &str, u64)]| -> Processes {
            list.iter().map(|(pid, name, ticks)| (*pid, (name.to_string(), *ticks))).collect()
        };
        let before = of(&[(1, "init", 500), (2, "cc", 10), (3, "gone", 9)]);
        let after = of(&[(1, "init", 500), (2, "cc", 40), (4, "\x1b[31mnew", 6)]);
        let used = users(&before, &after, 3.3);
        assert_eq!(used, [("cc".to_string(), 99), ("[31mnew".to_string(), 20)]);
    }

    #[test]
    fn names_the_three_busiest_processes() {
        let of = |list: &[(&str, u64)]| -> Check {
            let users: Vec<_> = list.iter().map(|(n, used)| (n.to_string(), *used)).collect();
            busy(&users, "0.50")
        };
        assert_eq!(of(&[("sshd", 3)]).mark, Mark::Ok);
        let found = "other processes use 3% of a CPU, load average 0.50";
        assert_eq!(of(&[("sshd", 3)]).found, found);
        assert_says(&of(&[("apt", 20)]), Mark::Note, &["apt 20%"], &["Stop them"]);
        let many = of(&[("cc", 90), ("ld", 50), ("make", 5), ("sh", 3)]);
        assert_says(&many, Mark::Warn, &["cc 90%, ld 50%, make 5%: "], &["wait"]);
        assert!(!many.effect.unwrap().contains("sh"));
    }

    #[test]
    fn lists_other_processes_but_not_this_one() {
        let seen = processes();
        assert!(!seen.contains_key(&std::process::id()));
        assert!(seen.contains_key(&1), "the first process of every machine and container");
    }
}
