//! The exhibit that replies before it delivers. A tool that times only the replies finds it the
//! fastest; the load disqualifies it. Skipped if it is not installed (`regatta peers install`).

use crate::support::{
    Server,
    hub::{hear, member, send},
    regatta, until,
};
use regatta_testkit::{machine, skip};
use serde_json::json;
use std::{
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Starts a peer on Node.js.
fn peer(name: &str) -> Option<Server> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../peers").join(name);
    if !folder.join("build/node").exists() {
        skip(&format!("{name} is not installed (regatta peers install {name})"));
        return None;
    }
    // The peer cannot choose a port by itself.
    let addr = SocketAddr::from(([127, 0, 0, 1], regatta_testkit::port::free()));
    let mut command = Command::new(folder.join("build/node"));
    command.current_dir(&folder).args(["hub.js", "--port", &addr.port().to_string()]);
    let child = command.stdout(Stdio::null()).process_group(0).spawn().unwrap();
    let server = Server { child, addr };
    until("the peer listens", || TcpStream::connect(addr).is_ok());
    Some(server)
}

/// Returns the median time until the sender receives a result, with this number of members.
fn result_time(server: &Server, members: usize) -> Duration {
    let mut all: Vec<_> = (0..members).map(|_| member(server)).collect();
    for socket in &mut all {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo");
    }
    let sender = &mut all[0];
    let mut times: Vec<Duration> = (0..51)
        .map(|n| {
            let begin = Instant::now();
            send(sender, &json!({"type": "broadcast", "payload": n}));
            while hear(sender)["type"] != "broadcastResult" {}
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_cheat_has_the_fastest_results_and_is_disqualified_for_its_deliveries() {
    let _turn = machine::alone();
    let (Some(cheat), Some(honest)) = (peer("node-ws-cheat"), peer("node-ws")) else { return };
    // The times between a broadcast and its result, which the article's tool measures.
    let [crowned, second] = [&cheat, &honest].map(|server| result_time(server, 300));
    println!(
        "results alone: {crowned:?} for the cheat, {second:?} for the same library used honestly"
    );
    assert!(crowned * 2 < second, "{crowned:?} and {second:?}");
    let load = |server: &Server| {
        let url = format!("ws://{}/ws", server.addr);
        regatta!("load {url} -c 20 --in-flight 4 -d 1s --warm-up 200ms").output().unwrap()
    };
    let found = load(&cheat);
    let printed = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found.status.code(), Some(1), "{printed}");
    assert!(printed.contains("own copy of the broadcast before its result"), "{printed}");
    let right = load(&honest);
    assert!(right.status.success(), "{}", String::from_utf8_lossy(&right.stderr));
}
