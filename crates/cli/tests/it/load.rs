//! Runs `regatta load`: its kinds of load, with their text, JSON and exit status.

use crate::support::{Server, json, refused, regatta, run, until};

use hdrhistogram::{
    Histogram,
    serialization::interval_log::{IntervalLogIterator, LogEntry},
};
use regatta_record::decode_histogram;
use regatta_testkit::child::Ended;
use rustix::process::Signal;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

/// Runs `regatta load` against the server, with more arguments.
fn load(server: &Server, more: &[&str]) -> Ended {
    let url = format!("line://{}", server.addr);
    run(regatta!("load {url}").args(more))
}

#[test]
fn warms_up_until_the_cost_of_a_process_is_steady_and_reports_it() {
    let server = Server::double("epoll", &[]);
    let pid = server.child.id().to_string();
    let more = ["-c", "8", "-d", "100ms", "--settle", "1500ms", "--pid", &pid];
    let output = load(&server, &[&more[..], &["--json", "/dev/stderr"]].concat());
    let text = output.stdout;
    assert!(text.contains("\nwarm-up     "), "{text}");
    let result: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    let settling = &result["settling"];
    assert!(settling["observed_ns"].as_u64().unwrap() >= 500_000_000, "{result:#}");
    assert!(settling["warm_ns_per_request"].as_f64().unwrap() > 100.0, "{result:#}");
    for wrong in [&["--settle", "1s"][..], &["--settle", "1s", "--pid", &pid, "--warm-up", "1s"]] {
        assert_eq!(load(&server, wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_burst_reports_the_time_of_each_instance() {
    let server = Server::double("epoll", &[]);
    let result =
        json(&load(&server, &["--burst", "4x20x10", "-t", "2", "--json", "-"]).with_status(0));
    let instances = result["instances_s"].as_array().unwrap();
    let window = result["duration_s"].as_f64().unwrap();
    assert_eq!((instances.len(), result["requests"].as_u64()), (4, Some(800)));
    assert!(instances.iter().all(|s| s.as_f64().is_some_and(|s| s > 0.0 && s <= window)));
    assert_eq!(result["connections"], 80);

    let text = load(&server, &["--burst", "2x3x4"]).stdout;
    let shape = "burst of 2 instances × 3 connections × 4 requests, at most 3 in flight on each";
    assert!(text.contains(shape) && text.contains("\ninstances   min "), "{text}");
    assert!(!text.contains("Haskell"), "not the article's load: {text}");
}

#[test]
fn the_articles_burst_is_shown_beside_the_articles_figures() {
    let server = Server::double("epoll", &[]);
    let text = load(&server, &["--burst", "10x500x10"]).with_status(0).stdout;
    let then =
        "Haskell 5.30 s on 8 cores, node 8.94 s, node cluster 5.50 s, Haskell on one core 8.0 s";
    assert!(text.contains(then) && text.contains("50,000 in "), "{text}");
}

#[test]
fn idle_connections_and_a_rate_are_in_the_result() {
    let server = Server::double("epoll", &[]);
    let more = ["-c", "50", "--idle", "30", "-p", "8", "-r", "1k/s", "-d", "1s"];
    let result = json(
        &load(&server, &[&more[..], &["--warm-up", "0s", "--json", "-"]].concat()).with_status(0),
    );
    assert_eq!((&result["connections"], &result["idle"]), (&50.into(), &30.into()));
    assert_eq!((&result["target_rate_per_s"], &result["unsent"]), (&1_000.into(), &0.into()));
    assert!(result["instances_s"].as_array().unwrap().is_empty());
    let open = &result["open_loop"];
    assert!(open["due"].as_u64().is_some_and(|due| (800..1_200).contains(&due)), "{open}");
    for part in ["latency_ns", "service_ns"] {
        assert!(result[part]["p50"].as_u64().is_some_and(|p50| p50 > 0), "{part}");
    }
    assert!(result["wait_ns"]["p50"].is_u64() && result["send_lag_ns"]["p50"].is_u64());
    assert!(result["late"].is_u64() && open["arrivals"]["distance"].is_f64());
}

#[test]
fn a_rate_that_is_not_reached_is_reported_with_status_1() {
    let server = Server::double("epoll", &[]);
    let text = load(&server, &["-c", "1", "-r", "10M", "-d", "200ms", "--warm-up", "0s"])
        .with_status(1)
        .stdout;
    assert!(text.contains("10,000,000/s poisson requested but NOT REACHED: "), "{text}");
}

#[test]
fn verify_is_refused_if_connections_cannot_share_keys() {
    let server = Server::double("epoll", &[]);
    let said = load(&server, &["--verify"]).with_status(2).stderr;
    assert!(said.contains("applies only to redis:// workloads"), "{said}");
    let url = format!("redis://{}", server.addr);
    let said = refused(regatta!("load {url} --verify --processes 2"));
    assert!(said.contains("--verify runs in one load process"), "{said}");
}

#[test]
fn a_window_without_a_correct_reply_ends_with_status_1() {
    let server = Server::double("epoll", &["--delay", "fixed:1s"]);
    let text = load(&server, &["-c", "1", "-d", "100ms", "--warm-up", "0s"]).with_status(1).stdout;
    assert!(text.contains("no correct reply arrived"), "{text}");
}

#[test]
fn the_example_workload_files_with_lines_pass_against_the_built_in_servers() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let double = Server::double("epoll", &[]);
    let dialogue = Server::start(regatta!("serve dialogue --by-hand --model epoll"));
    for (server, file) in
        [(&double, "double.toml"), (&double, "patterns.toml"), (&dialogue, "dialogue.toml")]
    {
        let path = examples.join(file);
        let more = ["-n", "20000", "-p", "8", "--workload", path.to_str().unwrap()];
        let ended = load(server, &[&more[..], &["--json", "-"]].concat()).with_status(0);
        assert_eq!(json(&ended)["requests"], 20_000, "{file}");
    }
}

#[test]
fn an_unexpected_reply_is_shown_beside_the_expectation_of_the_workload_file() {
    let server = Server::double("epoll", &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    for (expectation, printed) in [
        ("exact = '{n*3}'", "  expected  21\\n\n"),
        ("prefix = '{n}'", "  expected  a line starting with 7\n"),
        ("regex = '[a-z]+'", "  expected  a line matching [a-z]+\n"),
    ] {
        let text =
            format!("protocol = 'line'\n[[request]]\nsend = '{{n=int:7..7}}'\n{expectation}");
        fs::write(&path, text).unwrap();
        let text = load(&server, &["-n", "100", "--workload", path.to_str().unwrap()])
            .with_status(1)
            .stdout;
        let exchange = format!("  sent      7\\n\n{printed}  received  14\\n\n");
        assert!(text.contains(&exchange) && text.contains(" · mine · "), "{text}");
    }
}

#[test]
fn invalid_arguments_are_refused_with_the_permitted_values() {
    let server = Server::double("epoll", &[]);
    let burst = |more: &[&'static str]| [&["--burst", "2x3x4"], more].concat();
    let pid = server.child.id().to_string();
    for (args, said) in [
        (vec!["--busy-poll", "--pid", &pid], "--busy-poll would take CPU"),
        (vec!["--busy-poll", "--cpus", "0", "-t", "2"], "use more --cpus"),
        (vec!["--burst", "10x500"], "10x500x10"),
        (vec!["--burst", "10x0x10"], "10x500x10"),
        (vec!["--burst", "x3x4"], "10x500x10"),
        (burst(&["-c", "64"]), "cannot be used with"),
        (burst(&["-n", "10"]), "cannot be used with"),
        (burst(&["-d", "1s"]), "cannot be used with"),
        (burst(&["-r", "10"]), "cannot be used with"),
        (burst(&["--churn"]), "cannot be used with"),
        (burst(&["--idle", "1"]), "cannot be used with"),
        (vec!["-r", "0"], "20k/s"),
        (vec!["-r", "10/m"], "20k/s"),
        (vec!["--arrivals", "constant"], "--rate"),
        (vec!["-r", "5000M"], "10000000"),
        (vec!["-r", "10", "-n", "10"], "cannot be used with"),
        (vec!["-r", "10", "--churn"], "cannot be used with"),
        (vec!["--idle", "10", "-n", "10"], "cannot be used with"),
        (vec!["--idle", "10", "--churn"], "cannot be used with"),
        (vec!["--idle", "50000000"], "more descriptors"),
        (
            vec!["--workload", "triple"],
            "hello, hash, cache, hub, hub-echo, shard, or the path of a workload file",
        ),
        (vec!["--adapter", "cable"], "phoenix, actioncable, centrifuge, nats"),
        (
            vec!["--adapter", "nats"],
            "--adapter applies only to the workload hub; this load runs double",
        ),
        (vec!["-c", "0"], "expected a number of connections from 1 on, got \"0\""),
        (vec!["--cpus", "0,4095"], "--cpus: CPU 4095 is not available; this process may use ["),
        (vec!["--series", "seconds.txt"], "ends in .csv, or in .jsonl"),
        (vec!["--hdr-log", "no/such/folder/log"], "cannot write no/such/folder/log"),
        (vec!["--fail-if", "p99"], "the shell redirected the output to a file named 10ms"),
        (vec!["--fail-if", "p99<10ms"], "write it as 'p99>10ms'"),
        (vec!["--fail-if", "cost>5us"], "name its process with --pid"),
        (vec!["--fail-if", "p99>1s", "--slow", "headers"], "cannot be used with"),
        (vec!["--workload", "no/such.toml"], "the workload no/such.toml: cannot read"),
    ] {
        let printed = load(&server, &args).with_status(2).stderr;
        assert!(printed.contains(said), "{args:?}: {printed}");
    }
}

#[test]
fn urls_that_name_no_server_are_refused() {
    for (url, said) in [
        ("http:///foo", "\"http:///foo\" has no host; expected http(s)://HOST"),
        ("line://127.0.0.1:99999", "\"99999\" is not a port; expected a number from 1 to 65535"),
    ] {
        let printed = refused(regatta!("load").arg(url));
        assert!(printed.contains(said), "{printed}");
    }
}

#[test]
fn a_threshold_that_does_not_pass_fails_the_load() {
    let server = Server::double("epoll", &[]);
    // On a busy machine a server may get no CPU for some hundred milliseconds.
    let base = ["-c", "2", "-d", "1s", "--warm-up", "0s"];
    let text =
        load(&server, &[&base[..], &["--fail-if", "errors>0"]].concat()).with_status(0).stdout;
    assert!(text.contains("\nfail if     errors > 0          0  passed\n"), "{text}");

    let failing = ["--fail-if", "p50=1ns", "--fail-if", "errors>0"];
    let text = load(&server, &[&base[..], &failing].concat()).with_status(1).stdout;
    assert!(text.contains("\nfail if     p50 > 1ns  "), "{text}");
    let line = text.lines().find(|line| line.contains("p50 > 1ns")).unwrap();
    assert!(line.contains("  FAILED"), "{text}");

    let output = load(&server, &[&base[..], &failing, &["--json", "-"]].concat()).with_status(1);
    let thresholds = &json(&output)["thresholds"];
    assert_eq!((&thresholds[0]["passed"], &thresholds[1]["passed"]), (&false.into(), &true.into()));
    assert_eq!((&thresholds[0]["limit"], &thresholds[1]["value"]), (&1.0.into(), &0.0.into()));
    let stderr = output.stderr;
    assert!(stderr.contains("regatta: fail if p50 > 1ns"), "{stderr}");
}

/// Answers each line with twice its number, over a Unix socket, until the test ends.
fn doubles_at(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut replies = stream.try_clone().unwrap();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let twice = 2 * line.parse::<i128>().unwrap();
                    if replies.write_all(format!("{twice}\n").as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

#[test]
fn a_unix_socket_and_another_address_replace_that_of_the_url() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("double.sock");
    doubles_at(&socket);
    let run =
        |url: &str, more: &[&str]| run(regatta!("load {url} -c 4 -n 2000 --json -").args(more));
    let path = socket.to_str().unwrap();
    for more in [&["-p", "3"][..], &["--churn"], &["-t", "2", "--processes", "2"]] {
        let ended = run("line://localhost", &[&["--unix-socket", path], more].concat());
        assert_eq!(json(&ended.with_status(0))["requests"], 2_000, "{more:?}");
    }
    let server = Server::double("epoll", &[]);
    let port = server.addr.port();
    let url = format!("line://no-such-host.example:{port}");
    let resolve = format!("no-such-host.example:{port}:127.0.0.1");
    let ended = run(&url, &["--resolve", &resolve]).with_status(0);
    assert_eq!(json(&ended)["requests"], 2_000);

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (more, said) in [
        (["--resolve", "other:1:127.0.0.1"], "--resolve is for other:1, but the URL has"),
        (["--resolve", "other:1"], "expected HOST:PORT:ADDRESS"),
        (["--unix-socket", file.to_str().unwrap()], "expected a socket"),
        (["--unix-socket", "/no/such/socket"], "--unix-socket /no/such/socket: No such file"),
    ] {
        let printed = run(&url, &more).with_status(2).stderr;
        assert!(printed.contains(said), "{more:?}: {printed}");
    }
}

/// The seconds of all threads and processes add up to the result, request by request.
#[test]
fn the_seconds_in_files_add_up_to_the_result() {
    // With a delay, so that a closed loop leaves CPU to other tests.
    let server = Server::double("epoll", &["--delay", "fixed:3ms"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, log) = (path("seconds.csv"), path("seconds.hlog"));
    for processes in ["1", "2"] {
        for drive in [&["-p", "2"][..], &["--rate", "3k/s"], &["--churn"]] {
            let base = ["-c", "6", "-t", "2", "-d", "2500ms", "--warm-up", "50ms", "--json", "-"];
            let files = ["--processes", processes, "--series", &csv, "--hdr-log", &log];
            let output = load(&server, &[&base[..], &files, drive].concat());
            let (result, stderr) = (json(&output), output.stderr);
            let case = format!("{processes} processes, {drive:?}: {result:#}");

            let series = fs::read_to_string(&csv).unwrap();
            let rows: Vec<Vec<&str>> =
                series.lines().skip(1).map(|line| line.split(',').collect()).collect();
            // On a busy machine the window ends late, perhaps in another second.
            let numbers: Vec<usize> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
            assert!(numbers.iter().copied().eq(0..rows.len()), "{numbers:?}: {case}");
            let window = result["duration_s"].as_f64().unwrap();
            assert!((2.5..12.5).contains(&window) && rows.len() >= 3, "{case}");
            let lengths = rows.iter().map(|row| row[1].parse::<f64>().unwrap());
            let lengths: Vec<f64> = lengths.collect();
            let (last, before) = lengths.split_last().unwrap();
            let rest = window - before.len() as f64;
            assert!(before.iter().all(|length| *length == 1.0), "{lengths:?}: {case}");
            assert!((last - rest).abs() < 0.001, "{last}: {case}");
            if drive[0] != "--rate" {
                let requests = rows.iter().map(|row| row[2].parse::<u64>().unwrap()).sum::<u64>();
                assert_eq!(result["requests"], requests, "{case}");
            }

            let log = fs::read(&log).unwrap();
            let mut sum = Histogram::<u64>::new_with_bounds(1, 240_000_000_000, 3).unwrap();
            for entry in IntervalLogIterator::new(&log) {
                if let LogEntry::Interval(interval) = entry.unwrap() {
                    sum.add(decode_histogram(interval.encoded_histogram()).unwrap()).unwrap();
                }
            }
            let whole = decode_histogram(result["histogram"].as_str().unwrap()).unwrap();
            assert!(whole.len() > 100 && sum == whole, "{} {}: {case}", sum.len(), whole.len());

            let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("/s  p50")).collect();
            assert_eq!(lines.len(), rows.len(), "{stderr}");
            assert!(
                lines[0].starts_with("    1 s  ") && lines[1].starts_with("    2 s  "),
                "{stderr}"
            );
        }
    }
}

/// Whether the latency is void depends on the machine. A threshold far above it passes exactly if it is
/// not.
#[test]
fn each_stage_has_its_rate_its_figures_and_its_verdict() {
    let server = Server::double("epoll", &[]);
    let pid = server.child.id().to_string();
    let stages = ["--stages", "1s:1k/s,200ms:1M/s,1s:500/s", "--arrivals", "constant"];
    let more = ["-c", "2", "--pid", &pid, "--json", "/dev/stderr"];
    let fail_if = ["--fail-if", "rate<1/s", "--fail-if", "errors=0"];
    for processes in ["1", "2"] {
        let more = [&stages[..], &more, &fail_if, &["--processes", processes]].concat();
        let output = load(&server, &more).with_status(1);
        let text = output.stdout;
        let from = output.stderr.find('{').unwrap();
        let result: serde_json::Value = serde_json::from_str(&output.stderr[from..]).unwrap();
        let of = |key: &str| {
            let each = result["stages"].as_array().unwrap().iter();
            each.map(|stage| stage.pointer(key).cloned().unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(of("/open_loop/due"), [1_000, 200_000, 500].map(serde_json::Value::from));
        assert_eq!(of("/target_rate_per_s"), [1_000, 1_000_000, 500].map(serde_json::Value::from));
        assert!(of("/server_cpu_ns_per_request").iter().all(|cost| cost.as_f64() > Some(100.0)));
        // Other tests use the CPUs, so latencies and rates may be void.
        let thresholds = result["thresholds"].as_array().unwrap().iter();
        let of_errors = thresholds.filter(|one| one["fail_if"] == "errors > 0");
        let passed = |one: &serde_json::Value| (one["stage"].as_u64(), one["passed"] == true);
        let passed: Vec<_> = of_errors.map(passed).collect();
        assert_eq!(passed[..2], [(Some(1), true), (Some(2), false)], "{text}");
        assert_eq!(passed[3], (None, false), "{text}");
        assert!(
            text.contains("\nstages      ") && text.contains("stage 2     NOT REACHED"),
            "{text}"
        );
        assert!(
            text.lines().any(|line| line.starts_with("verdict ") && line.contains("stage ")),
            "{text}"
        );
        assert!(text.contains("\nfail if     stage 1: rate < 1/s"), "{text}");
    }
}

#[test]
fn a_void_latency_does_not_pass_a_threshold() {
    let server = Server::double("epoll", &[]);
    for rate in ["2k/s", "10M/s"] {
        let more = ["-c", "4", "-p", "64", "-d", "500ms", "--warm-up", "0s", "--rate", rate];
        let output = load(&server, &[&more[..], &["--fail-if", "p50>1h", "--json", "-"]].concat());
        let result = json(&output);
        let void = result["verdict"]["void"].as_array().unwrap();
        let is_void = void.iter().any(|figure| figure == "latency");
        let known = result["latency_ns"]["p50"].is_u64();
        let passed = known && !is_void;
        assert_eq!(result["thresholds"][0]["passed"], passed, "{result:#}");
        assert_eq!(result["thresholds"][0]["because"].is_string(), !passed, "{result:#}");
        if !passed {
            assert_eq!(output.code(), 1, "{result:#}");
        }
        assert!(
            rate == "2k/s" || !passed,
            "no load sends 10 million requests a second: {result:#}"
        );
    }
}

/// The load is stopped for longer than its timeout. Replies that arrive meanwhile are not timeouts,
/// although the load needs several turns to read them.
#[test]
fn replies_that_arrived_but_are_not_read_yet_do_not_time_out() {
    let server = Server::double("epoll", &[]);
    let url = format!("line://{}", server.addr);
    let mut load = regatta!("load {url} -c 4000 --timeout 2500ms --warm-up 100ms -d 8s --json -");
    let load = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&load);
    let opened = || fs::read_dir(format!("/proc/{}/fd", load.id())).unwrap().count();
    until("all connections are open", || opened() > 4000);
    for _ in 0..2 {
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        // Longer than the timeout, which is longer than other tests keep the server from running.
        std::thread::sleep(Duration::from_millis(2800));
        rustix::process::kill_process(pid, Signal::CONT).unwrap();
        // Time to read the replies that arrived, and to send new requests, even beside other programs.
        std::thread::sleep(Duration::from_millis(600));
    }
    let result = json(&load.wait_with_output().unwrap().into());
    assert_eq!(result["errors"]["timeout"], 0, "{result:#}");
}
