//! Runs `regatta capacity`: limits of the server, Ctrl-C, the page, and wrong usage. `tests/full` searches capacities
//! that are known by construction.

use crate::support::{
    Server, json,
    serial::{Serial, capacity, command},
};
use regatta_record::Capacity;
use regatta_testkit::{child::Ended, client::refusing, deadline::until_within};
use serde_json::Value;
use std::{
    fs,
    process::{Command, Stdio},
    sync::atomic::Ordering::Relaxed,
    time::Duration,
};

#[test]
fn a_contender_is_restarted_for_every_step_and_its_memory_is_reported() {
    let args = ["--contender", "epoll", "--limit", "p50=500ms", "--step", "10", "--max", "20"];
    let more = ["--window", "100ms", "--warm-up", "0s", "--debug-build", "--in-flight", "4"];
    let text = capacity(&[&args[..], &more].concat()).with_status(0).stdout;
    assert!(text.contains("≥ 20 clients (--max) at p50 ≤ 500 ms"), "{text}");
    // Two steps up, three to verify, and one more for each step whose first judgement was unclear.
    let (_, steps) = text.split_once("epoll, restarted for each of ").expect(&text);
    let (steps, _) = steps.split_once(" steps").expect(&text);
    assert!(steps.parse::<u32>().is_ok_and(|steps| steps >= 5), "{text}");
    assert!(text.contains("MiB with the connections open"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_contender_over_a_path_needs_no_workload_file() {
    let program = env!("CARGO_BIN_EXE_regatta");
    let own = format!("mine={program} serve hello --model poll --listen 127.0.0.1:{{port}}");
    let args = ["--contender", &own, "--http", "/?a=1", "--limit", "p50=500ms", "--step", "5"];
    let more = ["--max", "5", "--window", "100ms", "--warm-up", "0s", "--debug-build"];
    let found = json(&capacity(&[&args[..], &more, &["--json", "-"]].concat()).with_status(0));
    assert_eq!(found["workload"], "http-a-1", "{found:#}");
    assert_eq!(found["contender"]["name"], "mine");
    let rates = found["steps"].as_array().unwrap().iter();
    assert!(
        rates.clone().count() >= 3 && rates.clone().all(|step| step["passed"] == true),
        "{found:#}"
    );
}

/// The levels of a search over HTTP/2 for 8 streams on each connection, and what is wrong.
#[test]
fn a_search_over_http_2_says_so() {
    let server = Server::of("hello", "epoll", &["--http2"]);
    let url = format!("http://{}", server.addr);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("found.json");
    let file = file.to_str().unwrap();
    let limits = ["--limit", "p50=500ms", "--step", "5", "--max", "5", "-p", "8"];
    let limits = [&limits[..], &["--window", "100ms", "--warm-up", "0s"]].concat();
    let text =
        capacity(&[&[&url, "--http2", "--json", file][..], &limits].concat()).with_status(0).stdout;
    let said = "GET / over HTTP/2 · closed loop, 8 requests in flight per client";
    assert!(text.contains(said), "{text}");
    let found: Capacity = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(found.over.as_deref(), Some("http2"));
    // A contender by its manifest, whose server also reads nothing else.
    let own = ["--contender", "epoll", "--workload", "hello", "--http2", "--debug-build"];
    let found = json(&capacity(&[&own[..], &limits, &["--json", "-"]].concat()));
    assert_eq!(
        (&found["over"], &found["workload"]),
        (&"http2".into(), &"hello".into()),
        "{found:#}"
    );
    assert!(found["clients"]["low"] == 5, "{found:#}");
    let page = folder.path().join("page.html");
    let page = ["--html", page.to_str().unwrap(), "--compare", file];
    let line = format!("line://{}", server.addr);
    for (args, said) in [
        (vec![&url[..], page[0], page[1], page[2], page[3]], "is a result over HTTP/2, and this"),
        (vec![&line, "--http2"], "--http2: "),
        (vec!["--contender", "epoll", "--http2", "--debug-build"], "this race is over HTTP/2, but"),
    ] {
        let printed = capacity(&[&args[..], &limits].concat()).with_status(2).stderr;
        assert!(printed.contains(said), "{args:?}: {printed}");
    }
}

#[test]
fn a_server_that_already_runs_is_no_contender_of_a_capacity_search() {
    let server = Server::double("epoll", &[]);
    let running = format!("mine=line://{}", server.addr);
    let printed = capacity(&["--contender", &running, "--limit", "p50=500ms", "--debug-build"])
        .with_status(2)
        .stderr;
    assert!(printed.contains(&format!("capacity line://{}`", server.addr)), "{printed}");
}

#[test]
fn a_time_limit_ends_the_search_with_the_results_so_far() {
    let server = Serial::start();
    let args = [server.url.as_str(), "--limit", "p50=500ms", "--step", "1", "--json", "-"];
    let more = ["--window", "100ms", "--warm-up", "0s", "--time-limit", "1s"];
    let found = json(&capacity(&[&args[..], &more].concat()));
    let because = "it ended after 1s (--time-limit)";
    assert!([&found["one_sided"], &found["unverified"]].contains(&&because.into()), "{found:#}");
}

#[test]
fn the_servers_descriptor_limit_makes_the_result_one_sided() {
    let mut shell = Command::new("sh");
    let serve = "ulimit -n 100; exec \"$0\" serve double --model epoll";
    shell.args(["-c", serve, env!("CARGO_BIN_EXE_regatta")]);
    let server = Server::start(shell);
    let (url, pid) = (format!("line://{}", server.addr), server.child.id().to_string());
    let more = ["--limit", "p50=500ms", "--step", "80", "--window", "100ms", "--warm-up", "0s"];
    let rest = ["--pid", &pid, "--json", "-"];
    let found = json(&capacity(&[&[url.as_str()], &more[..], &rest].concat()).with_status(0));
    assert_eq!(found["one_sided"], "the server's descriptor limit");
    assert_eq!(found["clients"]["high"], Value::Null);
    assert!((81..100).contains(&found["clients"]["low"].as_u64().unwrap()), "{found:#}");
    assert!(found["memory_bytes"].as_u64().unwrap() > 100_000, "{found:#}");
}

#[test]
fn finds_nothing_if_one_client_already_exceeds_the_limit() {
    let server = Serial::without_catching_up();
    let more = ["--limit", "p50=100us", "--step", "2", "--window", "100ms", "--warm-up", "0s"];
    let text = capacity(&[&[server.url.as_str()], &more[..]].concat()).with_status(1).stdout;
    assert!(text.contains("none found at p50 ≤ 100 µs"), "{text}");
    assert!(text.contains("failed: p50 is above the limit"), "{text}");
}

#[test]
fn ctrl_c_prints_the_results_so_far() {
    let server = Serial::start();
    let more = [
        "--limit",
        "p95=500ms",
        "--step",
        "2",
        "--window",
        "300ms",
        "--warm-up",
        "0s",
        "--json",
        "-",
    ];
    let mut command = command(&[&[server.url.as_str()], &more[..]].concat());
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    // With 2, 4 and 6 clients, each at most twice (if there were too few replies).
    until_within(Duration::from_secs(60), "two steps are over", || {
        server.accepted.load(Relaxed) > 12
    });
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let found = json(&Ended::from(child.wait_with_output().unwrap()).with_status(130));
    assert!(found["clients"]["low"].as_u64().unwrap() >= 4, "{found:#}");
    assert_eq!(found["clients"]["high"], Value::Null);
    assert_eq!(found["unverified"], "it was interrupted");
}

#[test]
fn the_page_shows_the_same_result_as_the_json_and_others_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, html, both) = (file("a.json"), file("a.html"), file("both.html"));
    let server = Serial::start();
    let search = |limit: &str, more: &[&str]| {
        let few =
            ["--step", "2", "--max", "4", "--window", "200ms", "--warm-up", "0s", "--limit", limit];
        capacity(&[&[server.url.as_str()], &few[..], more].concat())
    };
    search("p95=500ms", &["--json", &json, "--html", &html]).with_status(0);
    let found: Capacity = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert!(found.setup.as_ref().is_some_and(|setup| setup.cpus > 0));
    let body = |page: &str| page.split("id=\"code\"").next().unwrap().to_owned();
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.contains("How many clients does line:"), "{page}");
    assert_eq!(body(&page), body(&regatta_page::capacity_page(&[found])));

    search("p95=500ms", &["--html", &both, "--compare", &json]).with_status(0);
    assert_eq!(fs::read_to_string(&both).unwrap().matches("<section class=\"server\">").count(), 2);

    for (limit, more, said) in [
        ("p95=600ms", &["--html", &both, "--compare", &json][..], "the same --by and --limit"),
        ("p95=500ms", &["--html", &both, "--compare", &html], "not a result of"),
        ("p95=500ms", &["--html", "-"], "--html expects a file"),
        ("p95=500ms", &["--html", "/nowhere/a.html"], "cannot write /nowhere/a.html"),
        ("p95=500ms", &["--compare", &json], "--html"),
    ] {
        let stderr = search(limit, more).with_status(2).stderr;
        assert!(stderr.contains(said), "no {said:?} in {stderr}");
    }
}

#[test]
fn wrong_usage_is_reported_with_advice() {
    let nobody = refusing();
    let url = format!("line://{}", nobody.addr);
    let limit = ["--limit", "p95=500ms"];
    for (args, said) in [
        (vec![url.as_str()], "--limit"),
        (vec![url.as_str(), "--limit", "p96=1ms"], "p50, p90, p95, p99, p99.9"),
        (vec![limit[0], limit[1]], "--contender"),
        (vec![url.as_str(), limit[0], limit[1], "--contender", "epoll"], "cannot be used with"),
        (vec![url.as_str(), limit[0], limit[1], "--by", "rate", "--in-flight", "4"], "--in-flight"),
        (vec![url.as_str(), limit[0], limit[1], "-c", "4"], "--by rate"),
        (vec![url.as_str(), limit[0], limit[1], "--timeout", "1ms"], "--timeout"),
        (vec![url.as_str(), limit[0], limit[1], "--step", "0"], "a number above 0, e.g. 5000"),
        (vec![url.as_str(), limit[0], limit[1], "--max", "5000M"], "a number up to"),
        (vec![url.as_str(), limit[0], limit[1], "-c", "8/s", "--by", "rate"], "a number above 0"),
        (vec![url.as_str(), limit[0], limit[1], "--by", "rate", "--max", "11M"], "10000000"),
        (vec!["--contender", "epol", "--debug-build", limit[0], limit[1]], "epol"),
        (vec![url.as_str(), limit[0], limit[1]], "refused"),
    ] {
        let printed = capacity(&args).with_status(2).stderr;
        assert!(printed.contains(said), "{args:?}: {printed}");
    }
}
