//! The workload files accept a server in the form of an entry, and find one that lies.

use super::Place;
use crate::support::{example::example, regatta, run};
use regatta_testkit::child::{Ended, Killed};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

/// A server, killed when dropped.
struct Server {
    _child: Killed,
    port: u16,
}

impl Server {
    fn start(place: &Place, lie: &[&str]) -> Server {
        let mut command = Command::new(example("arena_entry"));
        command.arg("0").args(lie).env("DATASET", place.path("checkout/data/dataset.json"));
        let mut child = Killed::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Server { port: line.trim().parse().unwrap(), _child: child }
    }

    fn load(&self, place: &Place, profile: &str, more: &[&str]) -> Ended {
        let (url, file) =
            (format!("http://127.0.0.1:{}", self.port), format!("workloads/arena-{profile}.toml"));
        let mut command = regatta!("load {url} --workload {file} -n 3000 -c 3");
        run(command.args(more).current_dir(place.folder.path()))
    }
}

fn imported() -> Place {
    let place = Place::new();
    assert_eq!(place.import(&["checkout", "--only", "plain"]).code(), 0);
    place
}

#[test]
fn an_honest_server_gives_the_expected_replies() {
    let place = imported();
    let server = Server::start(&place, &[]);
    for (profile, more) in [
        ("baseline", &[][..]),
        ("pipelined", &["-p", "16"]),
        ("limited-conn", &["--churn"]),
        ("json", &[]),
    ] {
        let ended = server.load(&place, profile, more);
        assert_eq!(ended.code(), 0, "{profile}: {ended:?}");
    }
}

#[test]
fn each_lie_is_found() {
    let place = imported();
    for (lie, profile) in [
        ("fixed", "baseline"),
        ("deaf", "baseline"),
        ("deaf", "limited-conn"),
        ("shared", "baseline"),
        ("short", "json"),
        ("more", "json"),
        ("text", "json"),
    ] {
        let server = Server::start(&place, &[lie]);
        let more: &[&str] = if profile == "limited-conn" { &["--churn"] } else { &[] };
        let ended = server.load(&place, profile, more);
        assert_eq!(ended.code(), 1, "{lie}: {ended:?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains("wrong"), "{lie}: {ended:?}");
    }
}
