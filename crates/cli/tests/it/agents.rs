//! Loads from several machines: a script in place of `ssh` runs the agents here.

mod capacity;
pub(crate) mod hub;
mod streams;

use crate::{
    processes::field,
    support::{Server, json, regatta, run, until, until_within},
};
use regatta_testkit::child::Ended;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::Read,
    os::unix::{fs::PermissionsExt, net::UnixListener, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");
/// All processes of a test have this in their environment, with a value of its own.
const MARK: &str = "REGATTA_TEST_MARK";

/// A server, and the script in place of `ssh`. It runs the command here, except that host `gone` does not exist,
/// host `mute` says nothing, host `far` answers after 50 ms, host `old` has another build, host `bare` no
/// regatta on its search path, host `tight` may open 112 files, and the clock of host `ahead` is ahead by 1000 s.
struct Place {
    folder: TempDir,
    server: Server,
    mark: String,
}

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = TempDir::new().unwrap();
        let binaries = Path::new(REGATTA).parent().unwrap().display();
        let home = folder.path().display();
        let script = format!(
            "#!/bin/sh\n\
             for last; do host=$command; command=$last; done\n\
             export HOME={home}\n\
             [ \"$host\" = bare ] || export PATH={binaries}:$PATH\n\
             case $host in\n\
             gone) echo 'ssh: Could not resolve hostname gone' >&2; exit 255 ;;\n\
             far) sh -c \"$command\" | while IFS= read -r line; do sleep 0.05; printf '%s\\n' \"$line\"; done ;;\n\
             mute) exec sleep 60 ;;\n\
             old) sh -c \"$command\" | sed -u 's/\"build\":\"[0-9a-f]*\"/\"build\":\"00ff\"/' ;;\n\
             tight) ulimit -n 112; exec sh -c \"$command\" ;;\n\
             ahead) exec unshare --time --monotonic 1000 --fork sh -c \"$command\" ;;\n\
             *) exec sh -c \"$command\" ;;\n\
             esac\n"
        );
        let ssh = folder.path().join("ssh");
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Place { folder, server: Server::double("epoll", &[]), mark }
    }

    fn command(&self, on: &str, more: &[&str]) -> Command {
        self.of(&["load", &self.url(), "--on", on], more)
    }

    /// A command of the program with these arguments.
    fn of(&self, first: &[&str], more: &[&str]) -> Command {
        let mut command = regatta!("");
        command.args(first).args(more);
        command.env("REGATTA_SSH", self.folder.path().join("ssh")).env(MARK, &self.mark);
        command
    }

    fn load(&self, on: &str, more: &[&str]) -> Ended {
        run(self.command(on, more))
    }

    /// The living processes of this test's loads with this argument.
    fn with(&self, argument: &str) -> Vec<u32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mark = format!("{MARK}={}", self.mark);
        let has = |pid: u32, name: &str, what: &str| {
            let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            text.split(|byte| *byte == 0).any(|one| one == what.as_bytes())
        };
        pids.filter(|pid| has(*pid, "environ", &mark) && has(*pid, "cmdline", argument)).collect()
    }

    fn is_empty(&self) -> bool {
        ["agent", "load-process"].iter().all(|argument| self.with(argument).is_empty())
    }

    /// Starts a load of half a minute on two agents, and waits until both have load processes. At this rate, it leaves
    /// CPU to other tests.
    fn long(&self) -> Child {
        self.long_of(&self.url(), &["--rate", "500/s"])
    }

    fn url(&self) -> String {
        format!("line://{}", self.server.addr)
    }

    /// The same of any server, with these arguments, in a closed loop unless they have a rate.
    fn long_of(&self, url: &str, more: &[&str]) -> Child {
        let args = [&["-c", "20", "-d", "30s", "--warm-up", "100ms"], more].concat();
        let mut command = self.of(&["load", url, "--on", "one,two"], &args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let leader = command.spawn().unwrap();
        until("two agents load", || {
            let processes = self.with("load-process");
            processes.len() == 2 && processes.iter().all(|pid| sockets(*pid) >= 10)
        });
        leader
    }
}

fn sockets(pid: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// System time of a process, in ticks of 10 ms (proc_pid_stat(5), field 15).
fn system_ticks(pid: u32) -> u64 {
    field(pid, 12).parse().unwrap_or(0)
}

/// Checks the result of a load without errors. Its windows may be longer than requested, because agents and server
/// share CPUs here.
fn assert_right(output: &Ended, connections: u64, processes: u64) -> serde_json::Value {
    assert_eq!(output.code(), 0, "{output:?}");
    let result = json(output);
    assert_eq!(
        (&result["connections"], &result["processes"]),
        (&connections.into(), &processes.into())
    );
    let errors = result["errors"].as_object().unwrap();
    assert!(errors.values().all(|n| n == 0), "{errors:?}");
    assert!(result["requests"].as_u64().unwrap() > 0, "{result:#}");
    result
}

fn ended(mut leader: Child) -> (Option<i32>, String) {
    until("the load ends", || leader.try_wait().unwrap().is_some());
    let mut text = String::new();
    leader.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (leader.wait().unwrap().code(), text)
}

#[test]
fn two_agents_load_a_server_and_are_in_the_result() {
    let place = Place::new();
    let pid = place.server.child.id().to_string();
    let short = ["-c", "20", "-d", "400ms", "--warm-up", "100ms", "--pid", &pid];
    let result =
        assert_right(&place.load("one,two", &[&short[..], &["--json", "-"]].concat()), 20, 2);
    assert!(result["server_cpu_ns_per_request"].as_f64().unwrap() > 100.0, "{result:#}");
    let on = &result["agents"];
    assert!(on["edges_within_ns"].as_u64().unwrap() > 0, "{on:#}");
    let agents = on["agents"].as_array().unwrap();
    let all = |field: &str| agents.iter().map(|agent| agent[field].clone()).collect::<Vec<_>>();
    assert_eq!(
        (all("name"), all("connections")),
        (vec!["one".into(), "two".into()], vec![10.into(); 2])
    );
    let sum: u64 = all("requests").iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(Some(sum), result["requests"].as_u64());
    for field in ["threads", "cores", "processes", "rtt_ns", "clock_bound_ns"] {
        assert!(all(field).iter().all(|n| n.as_u64().unwrap() > 0), "{field}: {on:#}");
    }
    assert!(all("verdict").iter().all(|verdict| verdict["kind"].is_string()));
    let text = place.load("one,two", &short).stdout;
    assert!(text.contains(" · from 2 agents\n") && text.contains("\nagents "), "{text}");
    assert!(text.contains("\none ") && text.contains("\ntwo "), "{text}");
    assert!(text.contains("\nwindows     agree within "), "{text}");
    until("nothing remains", || place.is_empty());
}

#[test]
fn stages_are_divided_among_agents() {
    let place = Place::new();
    let more =
        ["-c", "20", "--stages", "300ms:400/s,300ms:800/s", "--warm-up", "100ms", "--json", "-"];
    let result = json(&place.load("one,two", &more));
    assert_eq!(result["stages"].as_array().unwrap().len(), 2, "{result:#}");
    let agents = result["agents"]["agents"].as_array().unwrap();
    let sum: u64 = agents.iter().map(|agent| agent["requests"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), result["requests"].as_u64());
}

#[test]
fn an_absent_or_different_machine_is_refused_before_the_load() {
    let place = Place::new();
    let gone = place.load("one,gone", &["-d", "100ms"]).with_status(2);
    let expected = "regatta: agent gone cannot be reached: its command ended with exit status: 255: ssh: Could not \
                    resolve hostname gone\n";
    assert_eq!(gone.stderr, expected);
    let old = place.load("old,one", &["-d", "100ms"]).with_status(2);
    assert!(old.stderr.starts_with("regatta: agent old runs another build of regatta"), "{old:?}");
    let bare = place.load("bare", &["-d", "100ms"]).with_status(2);
    assert!(bare.stderr.contains("install regatta there"), "{bare:?}");
    until("nothing remains", || place.is_empty());
}

#[test]
fn deploy_copies_the_program_to_a_machine_without_it() {
    let place = Place::new();
    for _ in 0..2 {
        let more = ["-c", "4", "-d", "100ms", "--warm-up", "50ms", "--deploy", "--json", "-"];
        assert_right(&place.load("bare", &more), 4, 1);
    }
    let copies: Vec<_> =
        fs::read_dir(place.folder.path().join(".cache/regatta")).unwrap().collect();
    assert_eq!(copies.len(), 1);
}

#[test]
fn a_killed_agent_voids_the_load_and_what_it_counted_is_reported() {
    let place = Place::new();
    let file = place.folder.path().join("result.json");
    let leader = place.long_of(&place.url(), &["--json", file.to_str().unwrap()]);
    until("replies are counted and reported", || {
        place.with("load-process").into_iter().all(|pid| system_ticks(pid) > 20)
    });
    let agent = place.with("agent").into_iter().max().unwrap();
    let began = Instant::now();
    kill_process(Pid::from_raw(agent as i32).unwrap(), Signal::KILL).unwrap();
    let (status, text) = ended(leader);
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains(": the load is void: agent ") && text.contains(" is gone: "), "{text}");
    assert!(text.contains("agent one: ") && text.contains(" errors until then"), "{text}");
    let void: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(void["void"].as_str().unwrap().contains("is gone"), "{void:#}");
    let replies = void["agents"].as_array().unwrap().iter().map(|one| one["replies"].as_u64());
    assert!(replies.map(Option::unwrap).sum::<u64>() > 0, "{void:#}");
    until_within(Duration::from_secs(3), "nothing remains", || place.is_empty());
}

#[test]
fn nothing_remains_of_a_killed_leader() {
    let place = Place::new();
    let mut leader = place.long();
    leader.kill().unwrap();
    leader.wait().unwrap();
    until_within(Duration::from_secs(3), "nothing remains", || place.is_empty());
}

#[test]
fn ctrl_c_ends_the_load_on_all_agents_with_the_results_so_far() {
    let place = Place::new();
    let leader = place.long_of(&place.url(), &[]);
    // To the whole process group, as a terminal does.
    let group = Pid::from_raw(leader.id() as i32).unwrap();
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let (status, text) = ended(leader);
    assert_eq!(status, Some(130), "{text}");
    assert!(text.contains("interrupted "), "{text}");
    until("nothing remains", || place.is_empty());
}

#[test]
fn ctrl_c_ends_connecting() {
    let place = Place::new();
    for more in [&[][..], &["--deploy"]] {
        let mut command = place.command("one,mute", more);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let leader = command.spawn().unwrap();
        until("it connects to the mute machine", || !place.with("60").is_empty());
        let began = Instant::now();
        kill_process(Pid::from_raw(leader.id() as i32).unwrap(), Signal::INT).unwrap();
        let (status, text) = ended(leader);
        assert_eq!((status, text.as_str()), (Some(130), "interrupted before the measurement\n"));
        assert!(began.elapsed() < Duration::from_secs(1), "it took {:?}", began.elapsed());
        until("nothing remains", || place.is_empty() && place.with("60").is_empty());
    }
}

#[test]
fn a_silent_agent_is_reported_within_3_s() {
    let place = Place::new();
    let leader = place.long();
    let agent = place.with("agent").into_iter().max().unwrap();
    let began = Instant::now();
    kill_process(Pid::from_raw(agent as i32).unwrap(), Signal::STOP).unwrap();
    let (status, text) = ended(leader);
    let took = began.elapsed();
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains(" is gone: it has not answered for 2s"), "{text}");
    println!("reported after {took:?}");
    // Other tests may take the CPUs meanwhile.
    assert!(took < Duration::from_millis(3_500), "it took {took:?}");
    until_within(Duration::from_secs(3), "the other agent ends", || {
        place.with("load-process").len() <= 1
    });
    place.with("agent").into_iter().chain(place.with("load-process")).for_each(|pid| {
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    });
}

#[test]
fn a_paused_leader_does_not_blame_its_agents() {
    let place = Place::new();
    let mut leader = place.long();
    let pid = Pid::from_raw(leader.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    thread::sleep(Duration::from_secs(4));
    kill_process(pid, Signal::CONT).unwrap();
    // Longer than the silence that is a loss.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(leader.try_wait().unwrap(), None);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(ended(leader).0, Some(130));
}

#[test]
fn windows_that_may_be_apart_are_a_verdict() {
    let place = Place::new();
    let more = ["-c", "4", "-d", "300ms", "--warm-up", "100ms", "--json", "-"];
    let result = json(&place.load("one,far", &more));
    let verdict = &result["verdict"];
    assert_eq!(verdict["kind"], "generator-bound", "{verdict:#}");
    let because = verdict["because"].as_str().unwrap();
    assert!(because.starts_with("the windows of the agents may be "), "{because}");
}

#[test]
fn what_needs_one_machine_is_refused_with_the_reason() {
    let place = Place::new();
    for (more, expected) in [
        (&["-n", "10"][..], "-n does not work from several machines (--on): the window would end"),
        (&["--burst", "2x2x2"], "--burst does not work from several machines (--on): "),
        (&["--threads", "2"], "cannot be used with"),
        (&["--processes", "2"], "cannot be used with"),
        (&["--cpus", "0"], "cannot be used with"),
        (&["--on", "one"], "--on takes up to 64 different machines, each once"),
        (&["--on=-oProxyCommand=x"], "expected a destination of ssh"),
    ] {
        let output = place.load("one", more).with_status(2);
        assert!(output.stderr.contains(expected), "{output:?}");
    }
    let of = |url: &str, more: &[&str]| run(regatta!("load {url} --on one").args(more)).stderr;
    for (more, expected) in [
        (&["--passing", "2"][..], "--passing does not work from several machines (--on): "),
        (
            &["--idle", "2", "--stalled", "1"],
            "--stalled does not work from several machines (--on): ",
        ),
        (&["--churn"], "--churn does not work with the workload hub from several machines"),
        (
            &["--tolerate", "1%"],
            "--tolerate does not work with the workload hub from several machines",
        ),
        (
            &["--fail-if", "errors>1%"],
            "--fail-if 'errors > 1%' does not work with the workload hub from several machines",
        ),
        (
            &["--fail-if", "across-p99>1ms"],
            "'across-p99 > 1ms' is about deliveries between machines",
        ),
    ] {
        let hub = of("ws://127.0.0.1:1/", more);
        assert!(hub.contains(expected), "{hub}");
    }
    let no_hub = place.load("one,two", &["--fail-if", "across-p99>1ms"]);
    assert_eq!(no_hub.code(), 2, "{no_hub:?}");
    assert!(no_hub.stderr.contains("deliveries of a hub between machines"), "{no_hub:?}");
    let verify = of("redis://127.0.0.1:1", &["--verify"]);
    assert!(verify.contains("--verify does not work from several machines"), "{verify}");
    let path = place.folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let socket = of("http://localhost/", &["--unix-socket", path.to_str().unwrap()]);
    assert!(socket.contains("--unix-socket does not work from several machines"), "{socket}");
}
