//! Reloads at SIGHUP: settings change while members stay connected, and a file that is wrong changes nothing.

use crate::support::{
    DEADLINE, Server,
    hub::{Patient, Socket, closed, hear, member_of, on_hub_models, send},
    on_models, regatta, until,
};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{ChildStderr, Stdio},
};
use tempfile::TempDir;
use tungstenite::{client::client, protocol::frame::coding::CloseCode};

/// A hub with a configuration file.
struct Reloaded {
    server: Server,
    stderr: BufReader<ChildStderr>,
    path: PathBuf,
    folder: TempDir,
}

impl Reloaded {
    fn start(model: &str, text: &str) -> Reloaded {
        Reloaded::with(model, TempDir::new().unwrap(), text)
    }

    /// With files in this folder.
    fn with(model: &str, folder: TempDir, text: &str) -> Reloaded {
        let path = folder.path().join("hub.toml");
        fs::write(&path, text).unwrap();
        let mut command = regatta!("hub --model {model} --cores 2 --config");
        command.arg(&path);
        let mut server = Server::start(command.stderr(Stdio::piped()));
        let stderr = BufReader::new(server.child.stderr.take().unwrap());
        Reloaded { server, stderr, path, folder }
    }

    /// The next line that the hub prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Writes the file and reloads. Returns what the hub printed.
    fn reload(&mut self, text: &str) -> String {
        fs::write(&self.path, text).unwrap();
        self.server.signal("-HUP");
        self.line()
    }

    /// The status of a request that opens a WebSocket, or of another one.
    fn status(&self, path: &str, fields: &str) -> String {
        let mut stream = self.server.connect();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        String::from_utf8_lossy(&start[9..]).into_owned()
    }

    /// The status of a request to the API with this key.
    fn api(&self, key: &str) -> String {
        let mut stream = self.server.connect();
        let request = format!(
            "POST /api/info HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        String::from_utf8_lossy(&start[9..]).into_owned()
    }
}

fn echoes(socket: &mut Socket) {
    send(socket, &json!({"type": "echo", "payload": "still there"}));
    assert_eq!(hear(socket)["payload"], "still there");
}

on_models!(a_reload_applies_to_members_that_join_later: threads, select, poll, epoll, percore, green, on_async, uring);

fn a_reload_applies_to_members_that_join_later(model: &str) {
    let mut hub = Reloaded::start(model, "");
    let mut before = member_of(&hub.server, "/ws/news");
    echoes(&mut before);
    let text = "max_members = 3\norigin = [\"https://a.example\"]\n\n[[room]]\nmatch = \"news\"\npublish = \"api\"\n";
    let report = hub.reload(text);
    assert!(report.ends_with("changed: max_members, origin, room\n"), "{model}: {report}");
    let mut after = member_of(&hub.server, "/ws/news");
    for (socket, expected) in [(&mut after, "error"), (&mut before, "broadcast")] {
        send(socket, &json!({"type": "broadcast", "payload": 1}));
        assert_eq!(hear(socket)["type"], expected, "{model}");
    }
    assert_eq!(hub.status("/ws", "Origin: https://b.example\r\n"), "403", "{model}");
    let _third = member_of(&hub.server, "/ws");
    assert_eq!(hub.status("/ws", "Origin: https://a.example\r\n"), "503", "{model}");
    let report = hub.line() + &hub.line();
    for reason in ["reason=origin ", "reason=max_members "] {
        assert!(report.contains(reason) && report.contains("join refused"), "{model}: {report}");
    }
    let report = hub.reload("");
    assert!(report.ends_with("changed: max_members, origin, room\n"), "{model}: {report}");
    let mut last = member_of(&hub.server, "/ws/news");
    send(&mut last, &json!({"type": "broadcast", "payload": 1}));
    assert_eq!(hear(&mut last)["type"], "broadcast", "{model}");
}

on_hub_models!(members_stay_connected_at_a_hundred_reloads);

fn members_stay_connected_at_a_hundred_reloads(model: &str) {
    let mut hub = Reloaded::start(model, "slow = \"skip\"\n");
    let mut members: Vec<Socket> = (0..4).map(|_| member_of(&hub.server, "/ws")).collect();
    for n in 0..100 {
        let policy = ["skip", "close"][n % 2];
        let report = hub.reload(&format!("slow = \"{policy}\"\n"));
        assert!(report.contains("was read again"), "{model}: {report}");
        echoes(&mut members[n % 4]);
    }
    let fresh = client(format!("ws://{}/ws", hub.server.addr), Patient(hub.server.connect()));
    echoes(&mut fresh.unwrap().0);
    hub.server.signal("-TERM");
    for socket in &mut members {
        assert_eq!(closed(socket), Some(CloseCode::Away), "{model}");
    }
    assert!(hub.server.ended().success(), "{model}");
}

#[test]
fn a_file_that_is_wrong_changes_nothing_and_its_line_is_reported() {
    let mut hub = Reloaded::start("epoll", "max_members = 2\n");
    for (text, expected) in [
        ("max_members = 0\n", "hub.toml, line 1: invalid value '0'"),
        ("max_members = 1\nmax_member = 1\n", "hub.toml, line 2: there is no key max_member"),
        (
            "max_members = 1\n[[room]]\nmatch = \"a\"\nslow = \"no\"",
            "hub.toml, line 4: slow: expected",
        ),
        ("max_members = 1\ntoken_file = \"/nowhere\"", "cannot read /nowhere"),
        ("max_members = 1\nping_after = \"60s\"", "--ping-after 1m is not shorter"),
        (
            "max_members = 1\nlongest_message = 100000000\nmemory = 100000",
            "longest_message: the present memory",
        ),
    ] {
        let report = hub.reload(text);
        assert!(report.starts_with("regatta: the configuration stays as it is: "), "{report}");
        assert!(report.contains(expected), "{report}");
        let both = [(); 2].map(|()| member_of(&hub.server, "/ws"));
        drop(both);
    }
    let report = hub.reload("max_members = 2\nlisten = \"127.0.0.1:1\"\nmemory = 100\n");
    assert!(report.ends_with("these need a restart: listen, memory\n"), "{report}");
    let report = hub.reload("max_members = 2\nmemory = 100\n");
    assert!(report.ends_with("these need a restart: memory\n"), "{report}");
}

#[test]
fn new_keys_and_tokens_are_required_of_new_requests() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        format!("{path:?}")
    };
    let (token, key) = (write("token", "first\n"), write("key", "first-key-of-a-backend\n"));
    let text = format!("token_file = {token}\napi_key_file = {key}\n");
    let mut hub = Reloaded::with("percore", folder, &text);
    let mut before = member_of(&hub.server, "/ws?access_token=first");
    echoes(&mut before);
    assert_eq!(hub.api("first-key-of-a-backend"), "200");
    for (name, text) in [("token", "second\n"), ("key", "second-key-of-a-backend\n")] {
        fs::write(hub.folder.path().join(name), text).unwrap();
    }
    // They are read at a reload, and not before.
    assert_eq!(hub.status("/ws?access_token=first", ""), "101");
    let report = hub.reload(&text);
    assert!(report.ends_with("changed: the token or the key in the files\n"), "{report}");
    assert_eq!(hub.status("/ws?access_token=second", ""), "101");
    assert_eq!(hub.api("second-key-of-a-backend"), "200");
    assert_eq!(hub.status("/ws?access_token=first", ""), "401");
    assert_eq!(hub.api("first-key-of-a-backend"), "401");
    echoes(&mut before);
    let report = hub.line() + &hub.line();
    for line in [
        "regatta: join refused: reason=token_wrong of=\"/ws\" suppressed=0\n",
        "regatta: request refused: reason=api_key_wrong of=\"info\" suppressed=0\n",
    ] {
        assert!(report.contains(line), "{report}");
    }
    let report = hub.reload(&format!("token_file = {token}\n"));
    assert!(report.contains("api_key_file: adding or removing the API"), "{report}");
}

#[test]
fn a_reload_lets_nobody_in_without_a_token_who_needed_one() {
    let folder = TempDir::new().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "secret\n").unwrap();
    let mut hub = Reloaded::with("percore", folder, &format!("token_file = {token:?}\n"));
    for text in ["", "max_members = 5\n"] {
        let report = hub.reload(text);
        assert!(report.contains("lets everybody in"), "{report}");
    }
    assert_eq!(hub.status("/ws", ""), "401");
}

#[test]
fn a_file_that_a_start_would_refuse_is_refused_by_a_reload() {
    let mut hub = Reloaded::start("epoll", "");
    let report = hub.reload("max_rooms = 5\ntls_cert = \"/nowhere\"\ntls_key = \"/nowhere\"\n");
    assert!(report.starts_with("regatta: the configuration stays as it is: "), "{report}");
    assert!(report.contains("/nowhere"), "{report}");
    let report = hub.reload("ping_after = \"80s\"\nidle_timeout = \"90s\"\n");
    assert!(report.contains("with the options that need a restart as they are"), "{report}");
}

#[test]
fn a_hub_serves_and_stops_although_nobody_reads_its_stderr() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // The pipe is full: what a process writes to it blocks.
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    writer.write_all(&[b'.'; 4096]).unwrap();
    let key = TempDir::new().unwrap();
    let path = key.path().join("key");
    fs::write(&path, [b'k'; 32]).unwrap();
    let mut server = Server::start(
        regatta!("hub --cores 2 --jwt-audience a --jwt-key")
            .arg(&path)
            .args(["--jwt-algorithm", "HS256"])
            .stderr(writer),
    );
    for reason in ["", "Authorization: Bearer x\r\n", "Authorization: x\r\n"] {
        for _ in 0..4 {
            let mut stream = server.connect();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            let request = format!(
                "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{reason}\r\n"
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut start = [0; 12];
            stream.read_exact(&mut start).unwrap();
            assert_eq!(&start[9..], b"401", "{reason}");
        }
    }
    server.signal("-TERM");
    assert!(server.ended().success());
    drop(reader);
}

#[test]
fn the_service_manager_is_notified_of_a_reload() {
    let folder = TempDir::new().unwrap();
    let (path, notify) = (folder.path().join("hub.toml"), folder.path().join("notify"));
    fs::write(&path, "").unwrap();
    let manager = UnixDatagram::bind(&notify).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    let server = Server::start(regatta!("hub --config").arg(&path).env("NOTIFY_SOCKET", &notify));
    let notified = || {
        let mut received = [0; 200];
        let length = manager.recv(&mut received).unwrap();
        String::from_utf8_lossy(&received[..length]).into_owned()
    };
    assert!(notified().starts_with("READY=1\nSTATUS=listening"));
    server.signal("-HUP");
    let reloading = notified();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(notified(), "READY=1\n");
}

#[test]
fn every_process_of_a_cluster_reads_the_configuration_again() {
    let mut hub = Reloaded::start("cluster", "");
    let mut before = member_of(&hub.server, "/ws/news");
    echoes(&mut before);
    for (text, expected) in
        [("[[room]]\nmatch = \"news\"\npublish = \"api\"\n", "error"), ("", "broadcast")]
    {
        let report = hub.reload(text);
        assert!(report.ends_with("changed: room\n"), "{report}");
        // Ten connections are rarely of the same process.
        until("all processes have read it", || {
            (0..10).all(|_| {
                let mut after = member_of(&hub.server, "/ws/news");
                send(&mut after, &json!({"type": "broadcast", "payload": 1}));
                hear(&mut after)["type"] == expected
            })
        });
    }
    let report = hub.reload("[[room]]\nmatch = \"news\"\nmax_members = 2\n");
    assert!(report.contains("only without max_members in [[room]]"), "{report}");
    echoes_late(&mut before);
}

/// Like [`echoes`], for a member that has received broadcasts.
fn echoes_late(socket: &mut Socket) {
    send(socket, &json!({"type": "echo", "payload": "still there"}));
    while hear(socket)["payload"] != "still there" {}
}

on_models!(a_drain_is_reported_when_it_begins_and_ends: epoll, cluster, select, uring);

fn a_drain_is_reported_when_it_begins_and_ends(model: &str) {
    let mut hub = Reloaded::start(model, "drain = \"200ms\"\n");
    let mut member = member_of(&hub.server, "/ws");
    echoes(&mut member);
    hub.server.signal("-TERM");
    assert_eq!(
        hub.line(),
        "regatta: drain begins: members=1 drain=\"200ms\" grace=\"5s\"\n",
        "{model}"
    );
    assert_eq!(closed(&mut member), Some(CloseCode::Away), "{model}");
    drop(member);
    let ended = hub.line();
    assert!(ended.starts_with("regatta: drain ended: after="), "{model}: {ended}");
    assert!(hub.server.ended().success(), "{model}");
}
