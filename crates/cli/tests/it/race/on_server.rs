//! `regatta race --server`: a script in place of `ssh` runs the agent here. The contenders listen on 127.0.0.2, so
//! that they are not reached as local ones are.

use crate::support::race::{
    course::{Course, until},
    started::{Ended, Started},
};
use regatta_record::{Cell, Kind, Relation, Summary};
use regatta_testkit::skip;
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");
const ADDRESS: &str = "127.0.0.2";

/// A course with the script in place of `ssh`. It runs the command here, except that the host `old` has another
/// build.
struct Place(Course);

impl Place {
    /// `None`: this system does not have the address.
    fn new() -> Option<Place> {
        if TcpListener::bind((ADDRESS, 0)).is_err() {
            skip("127.0.0.2 is no address here");
            return None;
        }
        let course = Course::new();
        let binaries = Path::new(REGATTA).parent().unwrap().display();
        let script = format!(
            "#!/bin/sh\n\
             for last; do host=$command; command=$last; done\n\
             unset SSH_CONNECTION\n\
             export PATH={binaries}:$PATH\n\
             case $host in\n\
             mute) touch mute; exec sleep 600 ;;\n\
             old) sh -c \"$command\" | sed -u 's/\"build\":\"[0-9a-f]*\"/\"build\":\"00ff\"/' ;;\n\
             *) exec sh -c \"$command\" ;;\n\
             esac\n"
        );
        course.write("ssh", &script);
        fs::set_permissions(course.path("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        Some(Place(course))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        command.env("REGATTA_SSH", self.0.path("ssh"));
        command
    }

    fn start(&self, host: &str, contenders: &[String], args: &[&str]) -> Started {
        let contenders: Vec<&str> = contenders.iter().map(String::as_str).collect();
        let server = ["--server", host, "--server-address", ADDRESS, "--out", "out"];
        self.0.started(self.command(&[&contenders[..], &server, args].concat()))
    }

    fn race(&self, contenders: &[String], args: &[&str]) -> Ended {
        self.start("sut", contenders, args).ended()
    }

    /// The agents of its races.
    fn agents(&self) -> Vec<u32> {
        let is_agent = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"agent")
        };
        self.0.processes().into_iter().filter(is_agent).collect()
    }

    /// Starts a race that takes long, and waits until a life is stored and the next one is under way.
    fn long(&self) -> Started {
        let both = [server("a", "{host}", ""), server("b", "{host}", "")];
        let race = self.start(
            "sut",
            &both,
            &["-c", "8", "--rate", "500", "--rounds", "50", "--time", "100s"],
        );
        until("a life is stored and the next is under way", || {
            !self.0.rounds().is_empty() && !self.0.listening().is_empty()
        });
        race
    }
}

/// A server for `double` that listens on `host`.
fn server(name: &str, host: &str, more: &str) -> String {
    format!(
        "{name}={REGATTA} serve double --model epoll --listen {host}:{{port}} --idle-timeout 10m {more}"
    )
}

fn cell<'a>(summary: &'a Summary, contender: &str) -> &'a Cell {
    summary.cells.iter().find(|cell| cell.contender == contender).expect("a cell")
}

#[test]
fn cpu_that_a_server_burns_on_its_machine_is_found_and_equal_servers_are_alike() {
    let Some(place) = Place::new() else { return };
    let contenders = [("one", 1), ("two", 1), ("slow", 100)]
        .map(|(name, us)| server(name, "{host}", &format!("--burn {us}us")));
    let ended = place.race(
        &contenders,
        &["-c", "8", "--rate", "1000", "--rounds", "3", "--time", "12s", "--json", "-"],
    );
    let summary = ended.raced().summary();
    place.0.assert_nothing_left();
    let machine = summary.asked.server.as_ref().expect("the record has the machine");
    assert_eq!((machine.name.as_str(), machine.address.to_string().as_str()), ("sut", ADDRESS));
    assert!(machine.setup.cpus > 0 && machine.fingerprint.is_some(), "{machine:?}");
    assert!(summary.asked.cpus.apart, "{:?}", summary.asked.cpus);
    assert!(machine.one_machine, "the script runs the agent here");
    let has_doubt = |text: &str| summary.doubts.iter().any(|doubt| doubt.contains(text));
    assert!(has_doubt("server and load are one machine: they share CPUs"), "{:?}", summary.doubts);
    assert!(has_doubt("nobody looks for CPU time that a hypervisor took"), "{:?}", summary.doubts);
    for name in ["one", "two", "slow"] {
        // What else runs here is in it, so only the steps of the kernel's figures are certain.
        let machine = cell(&summary, name).machine.expect("the whole machine was read");
        assert!(machine.steps_ns_per_request > 0.0 && machine.cpus_alone >= 0.0, "{machine:?}");
    }
    let cost = |name: &str| cell(&summary, name).cost_ns_per_request.expect("a cost").mean;
    let burnt = cost("slow") - cost("one");
    assert!((60e3..300e3).contains(&burnt), "{burnt} ns more instead of 99000");
    assert_eq!(cell(&summary, "slow").relation, Some(Relation::Costlier));
    let ratio = cost("two") / cost("one");
    assert!((0.6..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn a_server_that_listens_only_on_127_0_0_1_fails_with_what_to_do() {
    let Some(place) = Place::new() else { return };
    let contenders = [server("far", "{host}", ""), server("near", "127.0.0.1", "")];
    let args = ["-c", "8", "--rate", "500", "--rounds", "1", "--json", "-"];
    let ended = place.race(&contenders, &args).with_status(1);
    place.0.assert_nothing_left();
    let summary = ended.summary();
    let verdict = &cell(&summary, "near").verdict;
    assert_eq!(verdict.kind(), Kind::Failed, "{verdict:?}");
    let expected = "near listens only on 127.0.0.1, and the load comes from another machine: write {host} where";
    assert!(verdict.because().contains(expected), "{}", verdict.because());
    assert_ne!(cell(&summary, "far").verdict.kind(), Kind::Failed);
}

#[test]
fn a_dry_run_describes_the_server_machine_and_starts_no_contender() {
    let Some(place) = Place::new() else { return };
    let contenders = [server("a", "{host}", ""), "b=touch started {port}".to_owned()];
    let ended = place.race(&contenders, &["-c", "8", "--rate", "500", "--dry-run"]).with_status(0);
    place.0.assert_nothing_left_soon();
    for part in [
        " of sut, in /",
        "; {host} is 127.0.0.2\n",
        "loads, from CPU ",
        " of this machine\n",
        "Nothing was started, except an agent on sut that described it.",
    ] {
        assert!(ended.stdout.contains(part), "no {part:?} in {}", ended.stdout);
    }
    assert!(!place.0.path("started").exists() && !place.0.out().exists());
}

#[test]
fn what_cannot_be_raced_on_another_machine_is_refused_by_name() {
    let Some(place) = Place::new() else { return };
    let two = [server("a", "{host}", ""), server("b", "{host}", "")];
    let old = place.start("old", &two, &[]).ended().with_status(2);
    old.assert_printed(&["agent old runs another build of regatta: "]);
    let missing = ["a=./no-such-program {host}:{port}".to_owned(), server("b", "{host}", "")];
    let missing = place.race(&missing, &[]).with_status(2);
    missing.assert_printed(&["agent sut cannot start a: ", "no-such-program"]);
    let rounds = place.race(&two, &["--schedule", "rounds"]).with_status(2);
    rounds.assert_printed(&["--schedule rounds does not work with --server yet"]);
    let running = ["a=http://127.0.0.1:1/".to_owned(), server("b", "{host}", "")];
    let running = place.race(&running, &[]).with_status(2);
    running.assert_printed(&["it is already running, so it cannot be frozen"]);
    let alone = place.0.race(&["--deploy"]).with_status(2);
    alone.assert_printed(&["--server-address and --deploy need --server HOST"]);
    let empty = place.start("", &two, &[]).ended().with_status(2);
    empty.assert_printed(&[
        "expected a destination of ssh after --server, e.g. bench@sut; got \"\"",
    ]);
    let moved = place.0.race(&["--resume", "out", "--server-address", "127.0.0.3"]).with_status(2);
    moved.assert_printed(&["'--resume <DIR>' cannot be used with", "--server-address"]);
    place.0.assert_nothing_left_soon();
    assert!(!place.0.out().exists(), "nothing was begun");
}

#[test]
fn an_address_that_the_server_machine_does_not_have_is_refused_before_anything_is_loaded() {
    let Some(place) = Place::new() else { return };
    let two = [server("a", "{host}", ""), server("b", "{host}", "")];
    let two: Vec<&str> = two.iter().map(String::as_str).collect();
    // An address for documentation (RFC 5737), which belongs to no machine.
    for (address, why) in [
        ("192.0.2.9", "agent sut has no address 192.0.2.9 to listen on ("),
        ("0.0.0.0", "agent sut would be loaded at 0.0.0.0; give the address of IPv4"),
    ] {
        let server = ["--server", "sut", "--server-address", address, "--out", "out"];
        let race = place.0.started(place.command(&[&two[..], &server].concat()));
        race.ended().with_status(2).assert_printed(&[why]);
    }
    place.0.assert_nothing_left_soon();
    assert!(!place.0.out().exists(), "nothing was begun");
}

#[test]
fn a_program_that_is_replaced_on_the_server_machine_ends_the_race() {
    let Some(place) = Place::new() else { return };
    let write = |text: &str| {
        let script =
            format!("#!/bin/sh\n{text}exec {REGATTA} serve double --model epoll --listen \"$1\"\n");
        place.0.write("new", &script);
        fs::set_permissions(place.0.path("new"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("");
    let both = [server("a", "{host}", ""), "b=./new {host}:{port}".to_owned()];
    let args = ["-c", "8", "--rate", "500", "--rounds", "50", "--time", "100s"];
    let race = place.start("sut", &both, &args);
    until("a life is stored", || !place.0.rounds().is_empty());
    write("# rebuilt\n");
    let ended = race.ended().with_status(2);
    place.0.assert_nothing_left();
    let expected =
        ["the race stopped: agent sut has other programs than before: ", "new was changed"];
    ended.assert_printed(&expected);
}

#[test]
fn a_lost_agent_ends_the_race_within_3_s_and_the_race_can_be_resumed() {
    let Some(place) = Place::new() else { return };
    let race = place.long();
    let began = Instant::now();
    for agent in place.agents() {
        assert!(
            Command::new("kill")
                .args(["-s", "KILL", &agent.to_string()])
                .status()
                .unwrap()
                .success()
        );
    }
    let ended = race.ended().with_status(2);
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    ended.assert_printed(&[
        "the race stopped: agent sut is gone: ",
        "resume with: regatta race --resume out",
    ]);
    place.0.assert_nothing_left_soon();
    let stored = place.0.rounds();
    let resumed = place.0.started(place.command(&["--resume", "out"]));
    until("it goes on", || place.0.rounds().len() > stored.len());
    resumed.signal("INT");
    resumed.ended().with_status(130);
    assert!(place.0.rounds().starts_with(&stored));
    place.0.assert_nothing_left();
}

#[test]
fn a_contender_that_dies_in_the_middle_of_a_life_is_reported_within_3_s() {
    let Some(place) = Place::new() else { return };
    let both = [server("a", "{host}", ""), server("b", "{host}", "--burn 3us")];
    let args = ["-c", "8", "--rate", "500", "--rounds", "1", "--time", "30s", "--json", "-"];
    let race = place.start("sut", &both, &args);
    let events = || fs::read_to_string(place.0.out().join("events.jsonl")).unwrap_or_default();
    until("both are loaded", || events().contains(r#""event":"block-started""#));
    let is_b = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&str> = line.split('\0').collect();
        words.get(1) == Some(&"serve") && words.contains(&"3us")
    };
    let b = place.0.processes().into_iter().find(is_b).expect("b runs");
    let killed_at = Instant::now();
    let killed = Command::new("kill").args(["-s", "KILL", &b.to_string()]).status().unwrap();
    assert!(killed.success());
    let died = "died: b was killed by signal 9 (SIGKILL)";
    until("its death is reported", || fs::read_to_string(&race.stderr).unwrap().contains(died));
    assert!(killed_at.elapsed() < Duration::from_secs(3), "{:?}", killed_at.elapsed());
    let ended = race.ended().with_status(1);
    place.0.assert_nothing_left();
    let at = |text: &str, what: &str| text.rfind(what).unwrap_or_else(|| panic!("{text}"));
    let failed = "failed: b was killed by signal 9 (SIGKILL)";
    assert!(at(&ended.stderr, died) < at(&ended.stderr, failed), "{}", ended.stderr);
    let events = events();
    assert!(at(&events, "contender-died") < at(&events, "block-started"), "the life goes on");
    let summary = ended.summary();
    assert_eq!(cell(&summary, "b").verdict.kind(), Kind::Failed);
    assert_ne!(cell(&summary, "a").verdict.kind(), Kind::Failed);
}

#[test]
fn ctrl_c_while_it_connects_says_only_that() {
    let Some(place) = Place::new() else { return };
    let race = place.start("mute", &[server("a", "{host}", ""), server("b", "{host}", "")], &[]);
    until("it connects", || place.0.path("mute").exists());
    race.signal("INT");
    let ended = race.ended().with_status(130);
    ended.assert_printed(&["interrupted"]);
    let printed = [ended.stdout, ended.stderr].concat();
    assert!(!printed.contains("pilot"), "{printed}");
    place.0.assert_nothing_left_soon();
}

#[test]
fn ctrl_c_and_a_killed_race_leave_nothing_on_the_server_machine() {
    let Some(place) = Place::new() else { return };
    let race = place.long();
    race.signal("INT");
    race.ended().with_status(130).assert_printed(&["interrupted; ", "race --resume out"]);
    place.0.assert_nothing_left();
    let temporary = || fs::read_dir(place.0.path("tmp")).unwrap().count();
    assert_eq!(temporary(), 0, "a folder is left");
    fs::remove_dir_all(place.0.out()).unwrap();
    let race = place.long();
    race.signal("KILL");
    drop(race);
    place.0.assert_nothing_left_soon();
}
