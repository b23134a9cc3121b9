//! `regatta race --server` on a machine of `scripts/lab`: what its cost and its network show. It shares the CPUs of this
//! machine, so the thresholds are coarse.

use crate::support::{lab::Lab, regatta, until};
use regatta_record::{Carried, Cell, Drive, Kind, NetworkUse, Round, Summary};
use regatta_testkit::{child::Killed, skip};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// CPUs that other programs may use here.
const MOST_ALONE: f64 = 0.2;

/// An HTTP server. `own`: it works for 2 ms for each request; `daemon PATH`: it has that done by a process behind a
/// socket; `bytes N`: its replies have N bytes. With `work PATH`, it is that process.
const SERVER: &str = r#"
import selectors, socket, sys, time

def work():
    end = time.thread_time_ns() + 2_000_000
    while time.thread_time_ns() < end:
        pass

def serve(listener, answer):
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                connection = listener.accept()[0]
                if connection.family == socket.AF_INET:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(connection, selectors.EVENT_READ)
            elif got := key.fileobj.recv(65536):
                answer(key.fileobj, got)
            else:
                ready.unregister(key.fileobj)
                key.fileobj.close()

if sys.argv[1] == 'work':
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    listener.listen(100)
    def answer(connection, got):
        work()
        connection.sendall(b'.')
else:
    host, port, how, *more = sys.argv[1:]
    listener = socket.create_server((host, int(port)), backlog=1000)
    length = int(more[0]) if how == 'bytes' else 2
    reply = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % length + b'x' * length
    if how == 'daemon':
        daemon = socket.socket(socket.AF_UNIX)
        daemon.connect(more[0])
    # The load holds back the end of some requests.
    begun = {}
    def answer(connection, got):
        *whole, begun[connection] = (begun.get(connection, b'') + got).split(b'\r\n\r\n')
        for _ in whole:
            if how == 'own':
                work()
            elif how == 'daemon':
                daemon.sendall(b'.')
                daemon.recv(1)
            connection.sendall(reply)
serve(listener, answer)
"#;

fn race(lab: &Lab, folder: &Path, contenders: &[(&str, &str)], args: &[&str]) -> Summary {
    let server = folder.join("server.py");
    fs::write(&server, SERVER).unwrap();
    let mut race = regatta!("race");
    race.current_dir(folder).env("REGATTA_SSH", &lab.ssh);
    for (name, how) in contenders {
        race.arg(format!("{name}=python3 {} {{host}} {{port}} {how}", server.display()));
    }
    race.args(["--server", "lab1", "--deploy", "--debug-build", "--http", "/", "--settle", "0s"]);
    race.args(["--load-sleeps", "--json", "-"]).args(args);
    let ran = race.stderr(Stdio::inherit()).output().unwrap();
    let summary: Summary = serde_json::from_slice(&ran.stdout).unwrap();
    let because: Vec<_> = summary.cells.iter().map(|cell| cell.verdict.because()).collect();
    assert!(ran.status.success(), "{because:?} {:?}", summary.doubts);
    summary
}

/// The cell of a contender, in a closed loop or at a rate.
fn cell<'a>(summary: &'a Summary, contender: &str, is_closed: bool) -> &'a Cell {
    let is_meant = |cell: &&Cell| {
        cell.contender == contender && (cell.load.drive == Drive::Closed) == is_closed
    };
    summary.cells.iter().find(is_meant).expect("a cell")
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_python3, has_sshd)),
    ignore = "ip, python3 or sshd is not installed (scripts/setup --all)"
)]
fn work_that_a_daemon_does_for_a_contender_is_in_the_cost_of_its_machine() {
    let Some(lab) = Lab::up("--machines 1") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (server, socket) = (folder.path().join("server.py"), folder.path().join("socket"));
    fs::write(&server, SERVER).unwrap();
    let line = format!("exec python3 {} work {}", server.display(), socket.display());
    let daemon = lab.command("lab1", &line).stdin(Stdio::null()).spawn().unwrap();
    let _daemon = Killed(daemon);
    until("the daemon listens", || socket.exists());
    let how = format!("daemon {}", socket.display());
    let args = ["-c", "4", "--rate", "200", "--rounds", "6", "--time", "60s", "--slice", "200ms"];
    let summary = race(&lab, folder.path(), &[("own", "own"), ("handed", &how)], &args);
    let [own, handed] = ["own", "handed"].map(|name| cell(&summary, name, false));
    let cost = |cell: &Cell| cell.cost_ns_per_request.expect("a cost").mean;
    let machine = |cell: &Cell| {
        let machine = cell.machine.expect("its machine was read");
        machine.cost_ns_per_request.unwrap_or_else(|| panic!("{machine:?}")).mean
    };
    println!("own: {:?}, {:?}", own.cost_ns_per_request, own.machine);
    println!("handed: {:?}, {:?}", handed.cost_ns_per_request, handed.machine);
    assert!(cost(own) > 2e6 && cost(handed) < 1e6, "the lie works");
    let cpus_alone = own.machine.expect("its machine was read").cpus_alone;
    if cpus_alone > MOST_ALONE {
        assert!(summary.doubts.iter().any(|doubt| doubt.starts_with("other programs used")));
        return skip(
            "other programs use this machine, so what the whole of it spends is not known",
        );
    }
    for (name, cell) in [("own", own), ("handed", handed)] {
        assert!((2e6..4e6).contains(&machine(cell)), "{name}: {:?}", cell.machine);
    }
    let ratio = machine(handed) / machine(own);
    assert!((0.8..1.4).contains(&ratio), "{ratio}");
    let is_named =
        |doubt: &String| doubt.starts_with("handed") && doubt.contains("work done elsewhere");
    assert!(summary.doubts.iter().any(is_named), "{:?}", summary.doubts);
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_python3, has_sshd)),
    ignore = "ip, python3 or sshd is not installed (scripts/setup --all)"
)]
fn a_narrow_cable_without_a_speed_is_no_verdict_and_both_ends_count_its_bytes() {
    let Some(lab) = Lab::up("--machines 1") else { return };
    // From the switch to this machine, with room for 40 frames: many are lost, and TCP sends them again.
    let mut tc = Command::new("tc");
    tc.args(["-n", "regatta-switch", "qdisc", "add", "dev", "leader", "root"]);
    tc.args(["tbf", "rate", "30mbit", "burst", "10kb", "limit", "60kb"]);
    assert!(tc.status().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let contenders = [("one", "bytes 60000"), ("two", "bytes 60000")];
    let args = ["-c", "4", "--rounds", "2", "--time", "20s", "--out", "out"];
    let summary = race(&lab, folder.path(), &contenders, &args);
    for contender in ["one", "two"] {
        let verdict = &cell(&summary, contender, true).verdict;
        println!("{}", verdict.because());
        assert!(!verdict.is(Kind::NetworkBound), "veth reports no speed: {}", verdict.because());
    }
    let rounds = fs::read_to_string(folder.path().join("out/rounds.jsonl")).unwrap();
    let rounds = rounds.lines().map(|line| serde_json::from_str::<Round>(line).unwrap());
    let mut all = NetworkUse::default();
    rounds.filter_map(|round| round.life?.network).for_each(|used| all.add(&used));
    println!("{all:?}");
    let [load, server] = [&all.load, &all.server].map(|end| end.as_ref().expect("its interface"));
    let bits_per_s = |bytes: u64, end: &Carried| 8e9 * bytes as f64 / end.ns as f64;
    let came = bits_per_s(load.received_bytes, load);
    let sent = bits_per_s(server.sent_bytes, server);
    // Slices begin and end without bytes on the cable; the queue may be full at the start.
    // TCP does not use all of a queue that loses so much.
    assert!((5e6..34e6).contains(&came), "{came} bit/s of 30 Mbit/s");
    // The server has sent what the queue lost, too.
    assert!((0.3..=1.25).contains(&(came / sent)), "{came} bit/s of {sent}");
}
