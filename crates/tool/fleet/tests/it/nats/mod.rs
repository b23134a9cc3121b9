//! Standing agents and their leaders, with a real broker.

mod place;
mod raw;
mod slow;

use crate::{
    common::{Recorder, marked, of_seconds, plan, run, run_watched},
    same,
};
use place::Place;
use raw::Raw;
use regatta_fleet::{Error, Settings, nats::State};
use regatta_load::{Arrivals, Burst, Drive, Phase, Plan, Progress, Until, WarmUp};
use regatta_testkit::deadline::{until, until_within};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    num::NonZeroU32,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// Returns how many milliseconds of CPU a process uses in the next 9 s, or until it ends (proc_pid_stat(5)).
fn meter(pid: u32) -> JoinHandle<u64> {
    let ms = move || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap());
        (fields[0] != "Z").then_some(10 * ticks.sum::<u64>())
    };
    thread::spawn(move || {
        let (began, before) = (Instant::now(), ms().unwrap());
        let mut now = before;
        while let Some(later) = ms().filter(|_| began.elapsed() < Duration::from_secs(9)) {
            now = later;
            thread::sleep(Duration::from_millis(100));
        }
        now - before
    })
}

/// Calls `does` once, inside the window.
fn in_window(mut does: impl FnMut()) -> impl FnMut(&Progress) {
    let mut is_done = false;
    move |progress| {
        if progress.phase == Phase::Measuring && progress.replies > 100 && !is_done {
            is_done = true;
            does();
        }
    }
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn agents_at_a_broker_send_exactly_the_requests_of_one_process() {
    let server = Recorder::start();
    let drive = Drive::Burst(Burst { instances: 6, requests: 20 });
    let plan =
        Plan { connections: 60, pipeline: 3, drive, until: Until::Done, ..plan(server.address) };
    same::by_processes(1, &plan);
    let expected = server.take();
    let place = Place::new(&["gen1", "gen2"]);
    place.agent("gen1", 4, "load-process");
    place.agent("gen2", 2, "load-process");
    let mut fleet = place.connect(&["gen1", "gen2"]).unwrap();
    let done = run(&mut fleet, &plan);
    assert!(server.take() == expected, "other requests");
    assert_eq!((done.whole.requests, done.whole.connections_opened), (1_200, 60));
    assert_eq!(done.agents.iter().map(|agent| agent.tally.requests).sum::<u64>(), 1_200);
    assert!(done.agents.iter().all(|agent| agent.rtt_ns > 0 && agent.clock_bound_ns > 0));
    // A second load in the same session, and then a second session.
    assert_eq!(run(&mut fleet, &plan).whole.requests, 1_200);
    drop(fleet);
    until("no process of the session remains", || place.is_idle());
    let mut fleet = place.connect(&["gen1", "gen2"]).unwrap();
    assert_eq!(run(&mut fleet, &plan).whole.requests, 1_200);
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn an_agent_serves_one_leader_at_a_time_and_is_listed() {
    let place = Place::new(&["gen1", "gen2"]);
    place.agent("gen1", 2, "load-process");
    let fleet = place.connect(&["gen1"]).unwrap();
    let error = place.connect(&["gen1"]).err().unwrap().to_string();
    assert!(
        error.contains("agent gen1 cannot be reached") && error.contains("it is busy"),
        "{error}"
    );
    let listed = place.list();
    let [gen1, gen2] = &listed[..] else { panic!("{listed:?}") };
    let seen = gen1.seen.as_ref().unwrap();
    assert_eq!((seen.about.state, seen.about.version.as_str()), (State::Busy, "test"));
    assert!(seen.rtt > Duration::ZERO && seen.about.build.len() == 64, "{seen:?}");
    assert!(gen2.seen.is_none() && gen2.name == "gen2");
    drop(fleet);
    until("it waits for the next leader", || {
        place.list()[0].seen.as_ref().is_some_and(|seen| seen.about.state == State::Idle)
    });
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn two_agents_with_the_same_key_are_noticed() {
    let (place, server) = (Place::new(&["gen1"]), Recorder::start());
    place.agent("gen1", 2, "load-process");
    place.second_agent("gen1", "load-process");
    until("it is listed", || place.list()[0].seen.as_ref().is_some_and(|seen| seen.is_double));
    let done = place.connect(&["gen1"]).map_err(|error| error.to_string());
    let done = done.and_then(|mut fleet| {
        let done = run_watched(&mut fleet, &of_seconds(60, &server), &mut |_| {});
        done.map(|_| ()).map_err(|void| void.error.to_string())
    });
    let error = done.unwrap_err();
    assert!(error.contains("two agents of this name are at the broker"), "{error}");
    until("no process of a session remains", || place.is_idle());
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn an_absent_agent_is_named_before_anything_starts() {
    let place = Place::new(&["gen1", "gen2"]);
    place.agent("gen1", 2, "load-process");
    let began = Instant::now();
    let error = place.connect(&["gen1", "gen2"]).err().unwrap().to_string();
    let expected = "agent gen2 cannot be reached: it is not connected to the broker, or does not answer: no answer \
                    within 3s";
    assert_eq!(error, expected);
    assert!(began.elapsed() < Duration::from_secs(6));
    let error = place.connect(&["gen3"]).err().unwrap().to_string();
    assert_eq!(error, "the fleet has no agent \"gen3\": it has gen1, gen2");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn an_agent_refuses_a_target_that_it_may_not_load() {
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let mut fleet = place.connect(&["gen1"]).unwrap();
    let plan = plan("198.51.100.7:80".parse().unwrap());
    let error = run_watched(&mut fleet, &plan, &mut |_| {}).unwrap_err().error.to_string();
    let expected = "agent gen1 refused: 198.51.100.7:80 is not among its targets (--targets 127.0.0.0/8:1-65535)";
    assert_eq!(error, expected);
    assert!(place.log("gen1").contains("regatta: load refused: session="), "{}", place.log("gen1"));
    assert_eq!(
        marked(&place.mark).iter().filter(|(_, words)| words[1] == "load-process").count(),
        0
    );
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_session_ends_after_its_limit() {
    let server = Recorder::start();
    let place = Place::new(&["gen1"]);
    place.limited_agent("gen1", 2, "load-process", "2");
    let mut fleet = place.connect(&["gen1"]).unwrap();
    // It may have sent so many requests at once, so the agent cannot know how long the load takes.
    let longest = Duration::from_secs(60);
    let warm_up = WarmUp::Steady { least: Duration::ZERO, requests: 1 << 40, longest };
    let plan = Plan { warm_up, ..plan(server.address) };
    let done = run_watched(&mut fleet, &plan, &mut |_| {}).map(|_| ());
    let error = done.unwrap_err().error.to_string();
    assert!(error.ends_with("the session lasted longer than 2s (--max-session)"), "{error}");
    until_within(Duration::from_secs(5), "the session is over", || place.is_idle());
    let log = place.log("gen1");
    assert!(log.contains("session ends: ") && log.contains("lasted longer than 2s"), "{log}");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_counts_if_the_broker_is_back_within_the_lease() {
    let server = Recorder::start();
    let place = Place::new(&["gen1", "gen2"]);
    for name in ["gen1", "gen2"] {
        place.agent(name, 2, "load-process");
    }
    let mut fleet = place.connect_usual(&["gen1", "gen2"]).unwrap();
    let mut restart = in_window(|| {
        place.kill_broker();
        // Longer than an agent may be silent while the broker is there.
        place.start_broker_after(Duration::from_secs(3));
    });
    let done = run_watched(&mut fleet, &of_seconds(6, &server), &mut restart).unwrap();
    assert!(done.whole.requests > 0 && done.whole.errors.total() == 0);
    assert_eq!(done.agents.len(), 2);
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_is_void_if_the_broker_stays_away() {
    let server = Recorder::start();
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let mut fleet = place.connect_usual(&["gen1"]).unwrap();
    let mut meters = Vec::new();
    let mut lose = in_window(|| {
        place.kill_broker();
        meters = [place.relay_pid(), place.pid("gen1")].map(meter).into();
    });
    let void = run_watched(&mut fleet, &of_seconds(60, &server), &mut lose).unwrap_err();
    drop(lose);
    // Both sleep meanwhile.
    let used: Vec<u64> = meters.into_iter().map(|meter| meter.join().unwrap()).collect();
    assert!(used.iter().all(|ms| *ms < 500), "{used:?} ms of CPU while the broker was away");
    let error = void.error.to_string();
    assert!(error.starts_with("agent gen1 is gone: "), "{error}");
    assert!(error.ends_with("the broker could not be reached for 10s"), "{error}");
    assert!(void.agents[0].replies > 100);
    until_within(Duration::from_secs(12), "the agent's lease is over", || place.is_idle());
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_killed_agent_is_reported_within_3_s_and_leaves_nothing() {
    let server = Recorder::start();
    let place = Place::new(&["gen1", "gen2"]);
    for name in ["gen1", "gen2"] {
        place.agent(name, 2, "load-process");
    }
    let mut fleet = place.connect_usual(&["gen1", "gen2"]).unwrap();
    let mut killed_at = None;
    let pid = place.pid("gen2");
    let mut lose = in_window(|| {
        kill(pid);
        killed_at = Some(Instant::now());
    });
    let void = run_watched(&mut fleet, &of_seconds(60, &server), &mut lose).unwrap_err();
    drop(lose);
    let took = killed_at.unwrap().elapsed();
    assert_eq!(void.error.to_string(), "agent gen2 is gone: it has not answered for 2s");
    assert!(took < Duration::from_secs(3), "{took:?}");
    drop(fleet);
    until("no process of a session remains", || place.is_idle());
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_restarted_agent_does_not_join_again() {
    let server = Recorder::start();
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let mut fleet = place.connect_usual(&["gen1"]).unwrap();
    let mut restart = in_window(|| {
        kill(place.pid("gen1"));
        place.agent("gen1", 2, "load-process");
    });
    let error = run_watched(&mut fleet, &of_seconds(60, &server), &mut restart).unwrap_err();
    let error = error.error.to_string();
    let expected = [
        "it has no such session: it was restarted",
        // It was away for longer.
        "it has not answered for 2s",
    ];
    assert!(expected.iter().any(|words| error.contains(words)), "{error}");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn without_its_leader_a_load_is_gone_within_the_lease() {
    let server = Recorder::start();
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let settings = Settings { lease: Duration::from_secs(1), ..Settings::default() };
    let mut fleet = place.connect_with(&["gen1"], settings).unwrap();
    let relay = place.relay_pid();
    // With its process killed, a relay cannot tell the agent that it ends.
    let mut lose = in_window(|| kill(relay));
    let error = run_watched(&mut fleet, &of_seconds(60, &server), &mut lose).unwrap_err();
    assert!(error.error.to_string().starts_with("agent gen1 is gone: its command ended"));
    until_within(Duration::from_secs(4), "the load is gone", || place.is_idle());
    until("the agent waits for the next leader", || {
        place.list()[0].seen.as_ref().is_some_and(|seen| seen.about.state == State::Idle)
    });
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_long_load_crosses_in_chunks_even_if_the_broker_is_restarted_meanwhile() {
    let server = Recorder::start();
    let place = &Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let mut fleet = place.connect(&["gen1"]).unwrap();
    // 5 MB, of which no broker takes more than 1 MiB at once.
    let plan = Plan { host: "x".repeat(5 << 20), ..plan(server.address) };
    let done = std::thread::scope(|scope| {
        let before = place.read_by_broker();
        scope.spawn(move || {
            until("a part has crossed", || place.read_by_broker() > before + (1 << 20));
            place.kill_broker();
            place.start_broker();
        });
        run(&mut fleet, &plan)
    });
    assert!(done.whole.requests > 0 && done.whole.errors.total() == 0);
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_that_crosses_for_longer_than_the_lease_is_carried_out() {
    let server = Recorder::start();
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    // 5 MB at 1 MB/s.
    place.leader_goes_over(slow::way(place.port, 1 << 20));
    let settings = Settings { lease: Duration::from_secs(2), ..Settings::default() };
    let mut fleet = place.connect_with(&["gen1"], settings).unwrap();
    let began = Instant::now();
    let done = run(&mut fleet, &Plan { host: "x".repeat(5 << 20), ..plan(server.address) });
    assert!(began.elapsed() > Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(done.whole.requests > 0 && done.whole.errors.total() == 0);
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn another_key_is_refused() {
    let place = Place::new(&["gen1"]);
    let other = Place::files(&["gen1"], place.port);
    for name in ["leader.nk", "gen1.nk"] {
        std::fs::copy(other.path().join(name), place.path(name)).unwrap();
    }
    let error = place.connect(&["gen1"]).err().unwrap();
    assert!(matches!(error, Error::Agent { .. }));
    assert!(error.to_string().contains("cannot connect to the broker"), "{error}");
    assert!(error.to_string().contains("authorization violation"), "{error}");
    let advice = "are NAME.nk and nats.conf of the same `regatta fleet init`?";
    assert!(error.to_string().ends_with(advice), "{error}");
    place.start_agent("gen1", 2, "load-process", "-");
    until("the agent says so", || place.log("gen1").contains("authorization violation"));
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_leader_of_another_fleet_reaches_no_agent_of_this_one() {
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let file = std::fs::read_to_string(place.path("leader.toml")).unwrap();
    std::fs::write(place.path("leader.toml"), file.replace(&place.fleet_name(), "other")).unwrap();
    let error = place.connect(&["gen1"]).err().unwrap().to_string();
    assert!(error.starts_with("agent gen1 cannot be reached: it is not connected"), "{error}");
    assert!(error.to_lowercase().contains("the broker reports: "), "{error}");
    assert!(error.to_lowercase().contains("permissions violation"), "{error}");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn an_agent_refuses_a_lease_that_is_longer_than_its_limit() {
    let place = Place::new(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let lease = Duration::from_secs(61);
    let settings = Settings { lease, ..Settings::default() };
    let error = place.connect_with(&["gen1"], settings).err().unwrap().to_string();
    let expected = "agent gen1 refused: a leader may be silent for at most 60s, and this one asks for a lease of 61s";
    assert_eq!(error, expected);
}

/// A server of doubles that closes each connection some time after its first reply.
fn closing_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut line = String::new();
                let read = BufReader::new(&stream).read_line(&mut line);
                let Ok(number) = line.trim().parse::<i128>() else { return };
                if read.is_ok() && writeln!(stream, "{}", number * 2).is_ok() {
                    thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    address
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_that_sends_more_than_its_plan_says_ends() {
    let place = Place::new(&["gen1"]);
    place.limited_agent("gen1", 2, "load-process", "50/s");
    let mut fleet = place.connect(&["gen1"]).unwrap();
    let drive = Drive::Open { rate: NonZeroU32::new(1).unwrap(), arrivals: Arrivals::Constant };
    let until_end = Until::Elapsed(Duration::from_secs(60));
    let plan = Plan { connections: 50, drive, until: until_end, ..plan(closing_server()) };
    let began = Instant::now();
    let error = run_watched(&mut fleet, &plan, &mut |_| {}).unwrap_err().error.to_string();
    assert!(error.contains("more than 50/s (--max-rate): each connection that"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    until("no process of the session remains", || place.is_idle());
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn loads_begin_at_most_once_a_second() {
    let (place, server) = (Place::new(&["gen1"]), Recorder::start());
    place.agent("gen1", 1, "load-process");
    let mut fleet = place.connect(&["gen1"]).unwrap();
    // Each load opens its connections and sends one request on each.
    let plan = Plan { until: Until::Requests(4), connections: 4, ..plan(server.address) };
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(run(&mut fleet, &plan).whole.requests, 4);
    }
    assert!(began.elapsed() > Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn tls_is_required_from_a_broker_elsewhere_and_only_the_fleets_ca_is_trusted() {
    let place = Place::over_tls(&["gen1"]);
    place.agent("gen1", 2, "load-process");
    let server = Recorder::start();
    let mut fleet = place.connect(&["gen1"]).unwrap();
    assert!(run(&mut fleet, &plan(server.address)).whole.requests > 0);
    let other = Place::over_tls_files(&["gen1"], place.port);
    std::fs::copy(other.path().join("ca.pem"), place.path("ca.pem")).unwrap();
    let error = place.connect(&["gen1"]).err().unwrap().to_string();
    assert!(
        error.contains("cannot connect to the broker") && error.contains("certificate"),
        "{error}"
    );
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn an_agent_can_neither_overhear_nor_command_another() {
    let place = Place::new(&["gen1", "gen2"]);
    let fleet = place.fleet_name();
    let mut gen1 = Raw::login(&place, "gen1");
    for subject in [
        format!("rg.{fleet}.a.gen2.*"),
        format!("rg.{fleet}.a.>"),
        format!("rg.{fleet}.up.gen2.*"),
        format!("rg.{fleet}.up.gen1.*"),
        ">".into(),
        "_INBOX.>".into(),
        "$SYS.>".into(),
    ] {
        let error = gen1.subscribe(&subject).unwrap_err();
        assert!(error.contains("Permissions Violation for Subscription"), "{subject}: {error}");
    }
    for subject in [
        format!("rg.{fleet}.a.gen2.1"),
        format!("rg.{fleet}.a.gen1.1"),
        format!("rg.{fleet}.up.gen2.1"),
        format!("rg.{fleet}.all"),
        "x".into(),
    ] {
        let error = gen1.publish(&subject).unwrap_err();
        assert!(error.contains("Permissions Violation for Publish"), "{subject}: {error}");
    }
    gen1.subscribe(&format!("rg.{fleet}.a.gen1.*")).unwrap();
    gen1.publish(&format!("rg.{fleet}.up.gen1.1")).unwrap();
    let mut leader = Raw::login(&place, "leader");
    leader.publish(&format!("rg.{fleet}.a.gen2.1")).unwrap();
    leader.subscribe(&format!("rg.{fleet}.up.gen2.*")).unwrap();
    leader.subscribe(&format!("rg.{fleet}.a.gen2.*")).unwrap_err();
}
