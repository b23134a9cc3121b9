//! Servers that already run: the race attaches to them by their URLs.

use crate::support::{
    race::course::{Course, until},
    regatta,
};
use regatta_host::is_taken;
use regatta_race::Store;
use regatta_record::{Kind, Round, Summary};
use regatta_testkit::{child::Killed, client::refusing, port};
use std::fs;

/// A short race with a twin.
const SHORT: [&str; 14] = [
    "--rounds", "2", "--window", "1s", "--settle", "0s", "-c", "4", "--rate", "200/s", "--out",
    "out", "--json", "-",
];

/// A running server of `hello`; dropping it ends it.
struct Server {
    child: Killed,
    port: u16,
}

impl Server {
    fn start() -> Server {
        Server::on(port::free())
    }

    fn on(port: u16) -> Server {
        let mut command = regatta!("serve hello --model poll --listen 127.0.0.1:{port}");
        let child = Killed::start(&mut command);
        until("the server listens", || is_taken(port).unwrap());
        Server { child, port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

fn doubt<'a>(summary: &'a Summary, part: &str) -> &'a str {
    let found = summary.doubts.iter().find(|doubt| doubt.contains(part));
    found.unwrap_or_else(|| panic!("no doubt says {part:?}: {:#?}", summary.doubts))
}

#[test]
fn two_running_servers_race_each_other_and_what_cannot_hold_for_them_is_said() {
    let course = Course::new();
    let (mut one, mut other) = (Server::start(), Server::start());
    let (first, second) = (one.url("/"), format!("new={}", other.url("/")));
    let summary = course.race(&[&[first.as_str(), &second][..], &SHORT].concat()).summary();
    course.assert_nothing_left();
    assert!(one.is_alive() && other.is_alive(), "a race does not stop them");
    let name = format!("port-{}", one.port);
    assert_eq!(summary.asked.contenders, [&name, &format!("{name}-twin"), "new", "null"]);
    for (name, pid) in [(name.as_str(), one.child.id()), ("new", other.child.id())] {
        let entry = summary.asked.entries.iter().find(|entry| entry.name == name).unwrap();
        assert_eq!(entry.running.as_ref().unwrap().processes[0].pid, pid);
        let cell = summary.cells.iter().find(|cell| cell.contender == name).unwrap();
        assert!(cell.requests > 0 && cell.verdict.kind() != Kind::ServerNotObserved, "{cell:?}");
        let (_, rounds) = Store::read(&course.out()).unwrap();
        let costs = |round: &Round| round.server.as_ref().is_some_and(|server| server.cpu_ns > 0);
        assert!(rounds.iter().filter(|round| round.contender == name).all(costs), "{rounds:?}");
    }
    let both = format!("{name} and new were already running and not restarted between rounds");
    doubt(&summary, &both);
    doubt(&summary, "kept running while other contenders were measured");
    doubt(&summary, "a server that the race starts itself gets a control group");
    doubt(&summary, &format!("{name} and its twin are the same process"));
    doubt(&summary, &format!("taskset -acp {} {}", summary.asked.cpus.server[0], one.child.id()));
    let page = fs::read_to_string(course.out().join("report.html")).unwrap();
    assert!(page.contains("already running and not restarted"), "the page says it too");
}

#[test]
fn a_command_and_a_running_server_are_asked_for_the_path_of_its_url() {
    let course = Course::new();
    let mut running = Server::start();
    let new = "new={regatta} serve hello --model epoll --listen 127.0.0.1:{port}";
    let url = format!("old={}", running.url("/?a=1"));
    let summary = course.race(&[&[new, url.as_str()][..], &SHORT].concat()).summary();
    course.assert_nothing_left();
    assert!(running.is_alive());
    assert!(summary.asked.workload_file.as_ref().unwrap().contains("path = \"/?a=1\""));
    let said = doubt(&summary, "already running");
    assert!(said.starts_with("old was already running"), "{said}");
    assert!(!summary.doubts.iter().any(|doubt| doubt.contains("its twin are the same process")));
}

#[test]
fn a_url_that_cannot_be_raced_is_an_error_before_anything_starts() {
    let course = Course::new();
    let running = Server::start();
    let (url, items) = (running.url("/"), running.url("/items"));
    let nobody = refusing();
    let down = format!("http://{}/", nobody.addr);
    let mine = "mine=sh -c 'exec \"$ILL\" {port}'";
    for (args, said) in [
        (
            &[url.as_str(), &down][..],
            &["cannot race: nothing listens on 127.0.0.1", "start the server"][..],
        ),
        (&[url.as_str(), &format!("again={url}")], &["again and port-", "are the same server"]),
        (&[url.as_str(), &items], &["have different paths"]),
        (
            &[url.as_str(), "redis://127.0.0.1:1"],
            &["a server of http and redis://127.0.0.1:1 of redis"],
        ),
        (&[url.as_str(), "http://192.0.2.1/"], &["the server must run on this machine"]),
        (&[url.as_str(), "https://127.0.0.1/"], &["connects without TLS"]),
        (
            &[items.as_str(), mine, "--http", "/other"],
            &["the path is not what http-other requests"],
        ),
        (
            &[url.as_str(), mine, "--workload", "double"],
            &["the workload double needs a URL of the form line://"],
        ),
    ] {
        let ended = course.race(&[args, &["--out", "out"]].concat()).with_status(2);
        ended.assert_printed(said);
        assert!(!course.out().exists(), "{args:?}");
    }
    assert!(course.log().is_empty(), "something was started");
}

#[test]
fn a_server_that_is_restarted_during_its_race_fails_the_round() {
    let course = Course::new();
    let server = Server::start();
    let (port, url) = (server.port, format!("old={}", server.url("/")));
    let new = "new={regatta} serve hello --model epoll --listen 127.0.0.1:{port}";
    let args = [
        "--rounds", "3", "--window", "1s", "--settle", "0s", "-c", "4", "--rate", "200/s", "--out",
        "out",
    ];
    let race = course.start(&[&[new, url.as_str()][..], &args].concat());
    let rounds = course.out().join("rounds.jsonl");
    until("a round has ended", || {
        fs::read_to_string(&rounds).is_ok_and(|text| text.contains('\n'))
    });
    drop(server);
    let again = Server::on(port);
    let ended = race.ended().with_status(1);
    let text = fs::read_to_string(&rounds).unwrap();
    // Served by another process, or by none for the moment.
    assert!(text.contains("when the race began"), "{text}\n{}", ended.stderr);
    // Nor does the race continue with the other server.
    let half = text.lines().next().unwrap().to_owned() + "\n";
    fs::write(&rounds, half).unwrap();
    let resumed = course.race(&["--resume", "out"]).with_status(2);
    resumed.assert_printed(&["the race cannot continue", &format!("process {}", again.child.id())]);
}
