//! Members that must leave, but do not read: their connections end all the same.

use crate::{
    hub::{
        api::{SECRET, call, files},
        stop::slow_connection,
    },
    support::{
        Server,
        hub::{Patient, Socket, hear, hub, long_broadcast, member_of, metric, on_hub_models, send},
    },
};
use jsonwebtoken::{EncodingKey, Header, encode};
use regatta_testkit::deadline::until_within;
use serde_json::{Value, json};
use std::{
    cell::OnceCell,
    fs,
    net::SocketAddr,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;
use tungstenite::client::client;

/// Within what time such a connection ends: ten seconds, and the time of a busy machine. It is less than the idle
/// timeout.
const LIMIT: Duration = Duration::from_secs(40);

/// A token is accepted for so long after it has expired.
const LEEWAY_S: u64 = 30;

/// A hub with an API that skips messages for slow members, and the number of its sockets.
struct Hub {
    _files: TempDir,
    server: Server,
    /// Its processes, which stay the same. To find them reads all of /proc, and these tests look at the sockets
    /// hundreds of times.
    pids: OnceCell<Vec<u32>>,
    page: SocketAddr,
}

impl Hub {
    fn new(model: &str) -> Hub {
        let (files, options) = files();
        let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
        options.extend(["--cores", "2", "--backlog-messages", "20", "--slow", "skip"]);
        options.extend(["--ping-after", "0s", "--idle-timeout", "200s"]);
        Hub::started(files, hub(model, &options))
    }

    fn started(files: TempDir, (server, page): (Server, SocketAddr)) -> Hub {
        Hub { _files: files, server, pids: OnceCell::new(), page }
    }

    /// Its sockets, in all of its processes.
    fn sockets(&self) -> usize {
        let find = || self.server.processes().into_iter().map(|(pid, _)| pid).collect();
        let pids = self.pids.get_or_init(find).iter();
        let files = pids.filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok());
        let links = files.flatten().flatten().filter_map(|file| fs::read_link(file.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    }

    /// A member of the room `red` that never reads, and whose queue is full.
    fn stuck(&self, claims: &Value, quick: &mut Socket) -> Socket {
        let token = encode(&Header::default(), claims, &EncodingKey::from_secret(&SECRET)).unwrap();
        let url = format!("ws://{}/ws/red?access_token={token}", self.server.addr);
        let mut stuck = client(url, Patient(slow_connection(&self.server))).unwrap().0;
        send(&mut stuck, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(&mut stuck)["type"], "echo");
        for n in 0.. {
            quick.send(long_broadcast(n, 20_000)).unwrap();
            assert_eq!(hear(quick)["payload"][0], n);
            if hear(quick)["listenerCount"] == 1 {
                return stuck;
            }
        }
        unreachable!("its queue has a limit");
    }

    fn members(&self) -> u64 {
        metric(self.page, "regatta_hub_members")
    }
}

fn quick(hub: &Hub) -> Socket {
    let claims = json!({"sub": "bob"});
    let token = encode(&Header::default(), &claims, &EncodingKey::from_secret(&SECRET)).unwrap();
    let mut quick = member_of(&hub.server, &format!("/ws/red?access_token={token}"));
    send(&mut quick, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut quick)["type"], "echo");
    quick
}

on_hub_models!(a_dismissed_member_that_never_reads_is_cut);

fn a_dismissed_member_that_never_reads_is_cut(model: &str) {
    if model == "cluster" {
        return; // it has no such orders
    }
    let hub = Hub::new(model);
    let mut quick = quick(&hub);
    let before = hub.sockets();
    let _stuck = hub.stuck(&json!({"sub": "ann"}), &mut quick);
    assert_eq!(hub.members(), 2, "{model}");
    // The connection over which the metrics were read may still be open.
    until_within(LIMIT, &format!("{model}: it has a socket"), || hub.sockets() == before + 1);
    let done = json!({"result": {}});
    assert_eq!(call(&hub.server, "disconnect", &json!({"user": "ann"})), done, "{model}");
    until_within(LIMIT, &format!("{model}: it is cut"), || hub.sockets() == before);
    assert_eq!(hub.members(), 1, "{model}");
}

on_hub_models!(a_member_whose_token_has_expired_and_that_never_reads_is_cut);

fn a_member_whose_token_has_expired_and_that_never_reads_is_cut(model: &str) {
    let hub = Hub::new(model);
    let mut quick = quick(&hub);
    let before = hub.sockets();
    let now_s = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let claims = json!({"sub": "ann", "exp": now_s + 5 - LEEWAY_S});
    let _stuck = hub.stuck(&claims, &mut quick);
    until_within(LIMIT, &format!("{model}: it is cut"), || hub.sockets() == before);
    assert_eq!(hub.members(), 1, "{model}");
}

on_hub_models!(a_slow_member_that_never_reads_its_last_messages_is_cut);

fn a_slow_member_that_never_reads_its_last_messages_is_cut(model: &str) {
    let options = ["--cores", "2", "--backlog-messages", "20"];
    let options = [&options[..], &["--ping-after", "0s", "--idle-timeout", "200s"]].concat();
    let hub = Hub::started(files().0, hub(model, &options));
    let mut quick = quick(&hub);
    let before = hub.sockets();
    let _stuck = hub.stuck(&json!({}), &mut quick);
    assert_eq!(metric(hub.page, "regatta_hub_slow_total{policy=\"close\"}"), 1, "{model}");
    until_within(LIMIT, &format!("{model}: it is cut"), || hub.sockets() == before);
    assert_eq!(hub.members(), 1, "{model}");
}
