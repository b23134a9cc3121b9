//! `scripts/lab`, and the clocks of its machines: they share the clock of this kernel, so the true offsets are known.

use crate::support::{
    lab::{Lab, left_behind, script, turn},
    until,
};
use regatta_fleet::clock::{Offset, Ping, Region};
use rustix::time::{ClockId, clock_gettime};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::MetadataExt, process::CommandExt},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

/// Between the pings before and after.
const ROUND: Duration = Duration::from_millis(10);
const PINGS: usize = 64;

/// Answers each line with the time of its clock, twice.
const AGENT: &str = "exec python3 -Euc '
import sys, time
for line in sys.stdin:
    received = time.monotonic_ns()
    print(received, time.monotonic_ns())
'";

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap()
}

/// A program on a machine that answers pings, at the other end of an ssh session.
struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    fn start(mut command: Command) -> Agent {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut agent = Agent { child, stdin, stdout: BufReader::new(stdout) };
        // The first answer comes when Python has started.
        agent.ping();
        agent
    }

    fn ping(&mut self) -> Ping {
        let mut line = String::new();
        let t0_ns = now_ns();
        self.stdin.write_all(b"\n").unwrap();
        self.stdout.read_line(&mut line).unwrap();
        let t3_ns = now_ns();
        let (t1, t2) = line.trim().split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        Ping { t0_ns, t1_ns: t1.parse().unwrap(), t2_ns: t2.parse().unwrap(), t3_ns }
    }

    fn pings(&mut self) -> Vec<Ping> {
        (0..PINGS).map(|_| self.ping()).collect()
    }

    fn stop(self) {
        let Agent { mut child, stdin, .. } = self;
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

/// Pings an agent before and after a round. Returns the offset in its middle. Panics unless the truth is inside the
/// bounds before, in and after it.
fn round(agent: &mut Agent, ahead_ns: u64) -> Offset {
    let before = agent.pings();
    thread::sleep(ROUND / 2);
    let middle_ns = now_ns();
    thread::sleep(ROUND / 2);
    let after = agent.pings();
    let region = Region::of(before.iter().chain(&after)).unwrap();
    for leader_ns in [before[0].t0_ns, middle_ns, after[PINGS - 1].t3_ns] {
        let offset = region.offset_at(leader_ns).unwrap();
        let error_ns = offset.centre_ns - i64::try_from(ahead_ns).unwrap();
        assert!(error_ns.unsigned_abs() <= offset.bound_ns, "{offset:?}, {ahead_ns}, {region:?}");
        let agent = region.to_agent(leader_ns).unwrap();
        let error_ns = agent.at_ns.abs_diff(leader_ns + ahead_ns);
        assert!(error_ns <= agent.bound_ns, "{agent:?}, {leader_ns}, {ahead_ns}, {region:?}");
        let leader = region.to_leader(leader_ns + ahead_ns).unwrap();
        let error_ns = leader.at_ns.abs_diff(leader_ns);
        assert!(error_ns <= leader.bound_ns, "{leader:?}, {leader_ns}, {ahead_ns}, {region:?}");
    }
    let [low, high] = region.rates_ppb();
    assert!(low <= 0 && high >= 0, "{low} to {high}, {ahead_ns}, {region:?}");
    region.offset_at(middle_ns).unwrap()
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_python3, has_sshd)),
    ignore = "ip, python3 or sshd is not installed (scripts/setup --all)"
)]
fn clocks_up_to_1000_s_ahead_are_within_their_bounds_over_ssh_in_201_rounds() {
    let Some(lab) = Lab::up("--machines 3 --clocks 0,7,1000") else { return };
    let mut bounds_ns = Vec::new();
    for (machine, ahead_s) in [("lab1", 0), ("lab2", 7), ("lab3", 1_000)] {
        let mut agent = Agent::start(lab.command(machine, AGENT));
        bounds_ns.extend((0..67).map(|_| round(&mut agent, ahead_s * 1_000_000_000).bound_ns));
        agent.stop();
    }
    bounds_ns.sort_unstable();
    let (median, highest) = (bounds_ns[bounds_ns.len() / 2], bounds_ns[bounds_ns.len() - 1]);
    println!("bounds of {} rounds: median {median} ns, highest {highest} ns", bounds_ns.len());
    assert!(median <= 200_000, "{bounds_ns:?}");
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_python3, has_sshd)),
    ignore = "ip, python3 or sshd is not installed (scripts/setup --all)"
)]
fn ways_of_2_and_5_ms_shift_the_offset_by_half_of_their_difference_within_the_bound() {
    let Some(lab) = Lab::up("--machines 1 --clocks 7 --delays 2/5") else { return };
    let mut agent = Agent::start(lab.command("lab1", AGENT));
    for _ in 0..5 {
        let offset = round(&mut agent, 7_000_000_000);
        let error_ns = offset.centre_ns - 7_000_000_000;
        println!("error {error_ns} ns, bound {} ns", offset.bound_ns);
        assert!(error_ns.abs_diff(-1_500_000) <= 100_000, "{offset:?}");
        assert!((3_500_000..4_000_000).contains(&offset.bound_ns), "{offset:?}");
    }
    agent.stop();
}

/// Whether a process that has not ended has this argument.
fn is_running(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let folder = entry.ok()?.path();
        folder.file_name()?.to_str()?.parse::<u32>().ok()?;
        fs::read(folder.join("cmdline")).ok()
    });
    let argument = argument.as_bytes();
    processes.into_iter().any(|line| line.split(|byte| *byte == 0).any(|word| word == argument))
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn a_lab_is_removed_with_all_its_processes_when_its_command_ends() {
    let Some(_turn) = turn() else { return };
    let mut run = script();
    run.args(["run", "--machines", "2", "sh", "-c"]);
    let on_lab2 = "setsid sleep 98760001 </dev/null >/dev/null 2>&1 & echo started";
    run.arg(format!("$REGATTA_SSH lab2 '{on_lab2}'; exit 7"));
    let ended = run.output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "started\n");
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
    until("its processes have ended", || !is_running("98760001"));
    assert_eq!(left_behind(), Vec::<String>::new());
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn a_lab_is_removed_after_ctrl_c() {
    let Some(_turn) = turn() else { return };
    let mut run = script();
    run.args(["run", "--machines", "1", "sh", "-c", "echo started; sleep 98760002; echo ended"]);
    let mut run = run.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut stdout = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    // Between its fork and its exec, a child of dash loses the signal.
    until("the command has started its own", || is_running("98760002"));
    let group = format!("-{}", run.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    line.clear();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "");
    assert_eq!((left_behind(), is_running("98760002")), (Vec::new(), false));
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn a_lab_that_is_up_is_kept_if_it_is_the_same_and_refused_to_run() {
    let Some(_turn) = turn() else { return };
    let call = |args: &[&str]| {
        let ended = script().args(args).output().unwrap();
        let text = String::from_utf8(ended.stdout).unwrap();
        (ended.status.code(), text, String::from_utf8(ended.stderr).unwrap())
    };
    let up = call(&["up", "1"]);
    let printed = "# lab1 is 198.18.0.11\nexport REGATTA_SSH=/tmp/regatta-lab/ssh\n";
    assert_eq!(up, (Some(0), printed.into(), String::new()));
    let namespace = || fs::metadata("/run/netns/regatta-lab1").unwrap().ino();
    let first = namespace();
    assert_eq!(call(&["up", "1"]), up);
    assert_eq!(namespace(), first);
    let (code, _, message) = call(&["run", "true"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("a lab is up: use it, or remove it with scripts/lab down"),
        "{message}"
    );
    for _ in 0..2 {
        assert_eq!(call(&["down"]), (Some(0), String::new(), String::new()));
        assert_eq!(left_behind(), Vec::<String>::new());
    }
}

#[test]
fn wrong_options_of_a_lab_are_refused() {
    for (args, expected) in [
        ("up 0", "expected 1 to 20 machines, got 0"),
        ("up 21", "expected 1 to 20 machines, got 21"),
        ("run", "expected a command"),
        ("run --machines", "expected a value after --machines"),
        ("run --machines 1 --clocks 1,2 true", "expected at most one clock for each of 1 machines"),
        ("run --clocks -5 true", "expected clocks ahead by whole seconds"),
        ("run --delays 2ms true", "expected delays in milliseconds, such as 0,2/5; got 2ms"),
        ("run --clock 5 true", "expected --machines, --clocks or --delays, got --clock"),
        ("start", "expected up, down or run, got start"),
    ] {
        let ended = script().args(args.split(' ')).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{args}");
        let message = String::from_utf8(ended.stderr).unwrap();
        assert!(message.contains(expected), "{args}: {message}");
    }
}
