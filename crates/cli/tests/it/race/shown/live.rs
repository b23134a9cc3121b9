//! `race --live`: the page while the race runs, read with another crate's HTTP client.

use crate::support::race::{
    course::{Course, until},
    started::Started,
};
use regatta_race::StoredEvents;
use regatta_record::{Happened, Phase, Round, Summary};
use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// An event of the stream, and when it arrived, in nanoseconds since the Unix epoch.
struct Arrived {
    unix_ns: u64,
    name: String,
    data: serde_json::Value,
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// The URL that a race prints before it starts.
pub fn url(race: &Started) -> String {
    let mut url = None;
    until("the race prints the URL of its page", || {
        let printed = fs::read_to_string(&race.stderr).unwrap();
        let line = printed.lines().find_map(|line| line.strip_prefix("live page: "));
        url = line.filter(|_| printed.contains('\n')).map(str::to_owned);
        url.is_some()
    });
    url.unwrap()
}

/// Reads the stream until the server ends it.
fn follow(url: &str) -> JoinHandle<Vec<Arrived>> {
    let response = ureq::get(format!("{url}events")).call().unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    thread::spawn(move || {
        let mut arrived = Vec::new();
        let mut name = String::new();
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let line = line.expect("the stream ends with its last event, not with an error");
            if let Some(text) = line.strip_prefix("event: ") {
                name = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(text).unwrap();
                arrived.push(Arrived { unix_ns: unix_ns(), name: name.clone(), data });
            } else {
                assert_eq!(line, "");
            }
        }
        arrived
    })
}

/// Fetches the page again and again until the server is gone. Returns when each response arrived.
fn fetch(url: &str) -> JoinHandle<Vec<u64>> {
    let url = url.to_owned();
    thread::spawn(move || {
        let mut arrived = Vec::new();
        while let Ok(mut response) = ureq::get(&url).call() {
            assert!(response.body_mut().read_to_string().unwrap().contains("<!doctype html>"));
            arrived.push(unix_ns());
            thread::sleep(Duration::from_millis(20));
        }
        arrived
    })
}

/// The measured windows of the race in `out`, in nanoseconds since the Unix epoch.
fn windows(course: &Course) -> Vec<(u64, u64)> {
    let (mut start, mut opened, mut windows) = (0, None, Vec::new());
    for event in StoredEvents::open(&course.out()).unwrap().map(Result::unwrap) {
        match event.happened {
            Happened::RaceStarted(header) => start = header.unix_ms * 1_000_000 - event.ns,
            Happened::PhaseStarted { phase: Phase::Window } => opened = Some(start + event.ns),
            Happened::PhaseStarted { phase: Phase::Stopping } => {
                windows.extend(opened.take().map(|opened| (opened, start + event.ns)));
            }
            _ => {}
        }
    }
    windows
}

#[test]
fn a_live_page_shows_each_pass_and_sends_nothing_inside_a_window() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null', 'epoll'", "900ms", "connections = [4]");
    let race = course.start(&["race.toml", "--rounds", "3", "--out", "out", "--live", "0"]);
    let url = url(&race);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let (stream, fetched) = (follow(&url), fetch(&url));
    race.ended().judged();
    let (arrived, fetched) = (stream.join().unwrap(), fetched.join().unwrap());
    course.assert_nothing_left();

    let of = |name: &str| arrived.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    let pages = of("message");
    // One before the first round, one after each pass; a page may be skipped for the next one.
    assert!(pages.len() >= 3, "{} pages", pages.len());
    let summary = fs::read_to_string(course.out().join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_str(&summary).unwrap();
    let last = pages.last().unwrap();
    let rounds = fs::read_to_string(course.out().join("rounds.jsonl")).unwrap();
    let rounds: Vec<Round> =
        rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(last.data["body"], regatta_page::body(&summary));
    assert_eq!(
        last.data["data"],
        serde_json::from_str::<serde_json::Value>(&regatta_page::data(&summary, &rounds)).unwrap()
    );
    let said: Vec<&str> =
        of("progress").iter().map(|it| it.data["text"].as_str().unwrap()).collect();
    assert!(said.iter().any(|text| text.contains("epoll at 4 conn, 200/s, start ")), "{said:?}");
    assert_eq!(said.last(), Some(&"finished"));
    assert_eq!(arrived.last().unwrap().name, "over");

    // The wall clock of the header has milliseconds. On a busy machine, the threads of this test are late to read what
    // was sent before a window.
    let [late, margin] = [600_000_000, 20_000_000];
    let windows = windows(&course);
    assert_eq!(windows.len(), rounds.len(), "{windows:?}");
    let times: Vec<u64> = arrived.iter().map(|event| event.unix_ns).chain(fetched).collect();
    for (opened, closed) in windows {
        assert!(closed - opened >= 900_000_000, "a window of {} ns", closed - opened);
        let inside = opened + late..closed - margin;
        let sent: Vec<&u64> = times.iter().filter(|at| inside.contains(at)).collect();
        assert!(sent.is_empty(), "sent at {sent:?} in the window {opened} to {closed}");
    }
    assert!(times.len() > 12, "{times:?}");
}

#[test]
fn a_live_page_is_read_only_and_survives_bad_clients() {
    let course = Course::new();
    course.write_quiet_race("'null', 'epoll'", "300ms", "connections = [4]");
    let race =
        course.start(&["race.toml", "--rounds", "2", "--out", "out", "--live", "localhost:0"]);
    let url = url(&race);
    // A client that says nothing, one that reads nothing, one that closes at once.
    let addr = url.trim_start_matches("http://").trim_end_matches('/');
    let _silent = TcpStream::connect(addr).unwrap();
    let mut unread = TcpStream::connect(addr).unwrap();
    std::io::Write::write_all(&mut unread, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    drop(TcpStream::connect(addr).unwrap());
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    assert_eq!(agent.get(format!("{url}race.toml")).call().unwrap().status(), 404);
    assert_eq!(agent.post(&url).send("x").unwrap().status(), 405);
    // Another site's page reaches this server by a name that resolves to it (DNS rebinding).
    for (host, status) in [
        ("example.org", 403),
        ("localhost.example.org:80", 403),
        ("127.0.0.1.example.org", 403),
        ("[::1", 200),
        ("LOCALHOST:8080", 200),
        ("[::1]:8080", 200),
        ("127.0.0.1", 200),
    ] {
        let answer = agent.get(&url).header("Host", host).call().unwrap();
        assert_eq!(answer.status(), status, "{host}");
    }
    race.ended().judged();
    course.assert_nothing_left();
}

#[test]
fn a_live_page_needs_an_address_that_is_free() {
    let course = Course::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let refused = course.race(&["quick", "--live", &addr]).with_status(2);
    refused.assert_printed(&[&format!("cannot serve the live page on {addr}"), "in use"]);
    let wrong = course.race(&["quick", "--live", "example.org"]).with_status(2);
    wrong.assert_printed(&["expected a port, such as 8080, or an address, such as 127.0.0.1:8080"]);
}
