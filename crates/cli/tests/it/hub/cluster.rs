//! The hub on `cluster`, whose processes forward broadcasts through sockets: broadcasts, limits and
//! metrics over all processes, a process that is killed or stalls, and the options that are refused.

use crate::support::{
    Server,
    hub::{Socket, closed, hear, hub, member, metric, send},
    refused, regatta, until,
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};
use tungstenite::protocol::frame::coding::CloseCode;

/// Limits so high that the policy for slow members never acts.
const PATIENT: [&str; 6] =
    ["--backlog", "1000000000", "--backlog-messages", "1000000", "--ping-after", "0s"];
/// Bytes of a payload.
const LONG: usize = 8 * 1024;

/// Returns the server process that holds a connection.
fn process_of(server: &Server, socket: &Socket) -> u32 {
    let port = |end: &str| {
        let (_, port) = end.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    let own = socket.get_ref().0.local_addr().unwrap().port();
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    // The fields: a number, the local address, the remote one, …, the inode (proc_net(5)).
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line =
        lines.find(|line| (port(line[1]), port(line[2])) == (Some(server.addr.port()), Some(own)));
    let inode = format!("socket:[{}]", line.expect("it is connected")[9]);
    let has = |pid: &u32| {
        let mut all = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
        all.any(|fd| fs::read_link(fd.path()).is_ok_and(|link| link.as_os_str() == &*inode))
    };
    let all = server.processes().into_iter().map(|(pid, _)| pid);
    all.filter(|pid| *pid != server.child.id()).find(has).expect("one of its processes has it")
}

/// Connects a member. Returns it with the server process that holds its connection.
fn member_somewhere(server: &Server) -> (Socket, u32) {
    let mut socket = member(server);
    send(&mut socket, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut socket)["type"], "echo");
    let process = process_of(server, &socket);
    (socket, process)
}

/// Connects members until each of two processes has at least one. Returns them by process.
fn members_of_both(server: &Server) -> BTreeMap<u32, Vec<Socket>> {
    let mut members = BTreeMap::<u32, Vec<Socket>>::new();
    for _ in 0..64 {
        let (socket, process) = member_somewhere(server);
        members.entry(process).or_default().push(socket);
        if members.len() == 2 {
            return members;
        }
    }
    panic!("64 connections of one process");
}

fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([name, &process.to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_broadcast_reaches_the_members_of_all_processes_and_counts_them() {
    let server = Server::of("hub", "cluster", &["--cores", "2"]);
    let mut both = members_of_both(&server);
    let all: usize = both.values().map(Vec::len).sum();
    let processes: Vec<u32> = both.keys().copied().collect();
    for process in processes {
        let sender = &mut both.get_mut(&process).unwrap()[0];
        send(sender, &json!({"type": "broadcast", "payload": process}));
        for socket in both.values_mut().flatten() {
            assert_eq!(hear(socket), json!({"type": "broadcast", "payload": process}));
        }
        assert_eq!(hear(&mut both.get_mut(&process).unwrap()[0])["listenerCount"], all);
    }
}

/// The members of the other process are closed with 1001 (going away), including one that waits for a
/// result from the dead process. Also if a stop would drain for long: a part of a cluster serves nobody well.
#[test]
fn a_killed_process_stops_the_cluster_and_closes_members_that_wait_for_it() {
    for arguments in [&["serve", "hub"][..], &["hub", "--drain", "1h", "--drain-delay", "1h"]] {
        killed(arguments);
    }
}

fn killed(arguments: &[&str]) {
    let mut command = regatta!("");
    command.args(arguments).args(["--model", "cluster", "--cores", "2"]).stderr(Stdio::piped());
    let mut server = Server::start(command);
    let mut both = members_of_both(&server);
    let (dead, _) = both.pop_first().unwrap();
    // Stopped first, so that a result waits for it when it dies.
    signal(dead, "-STOP");
    let (_, mut alive) = both.pop_first().unwrap();
    send(&mut alive[0], &json!({"type": "broadcast", "payload": "waits"}));
    for socket in &mut alive {
        assert_eq!(hear(socket)["payload"], "waits");
    }
    signal(dead, "-KILL");
    for socket in &mut alive {
        assert_eq!(closed(socket), Some(CloseCode::Away));
    }
    assert!(!server.ended().success());
    let mut printed = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    let expected = format!("process {dead} (one of 2) was killed by signal 9");
    assert!(printed.contains(&expected), "{printed}");
}

/// A client's frame, masked with zeros.
fn framed(n: usize) -> Vec<u8> {
    let payload = json!({"type": "broadcast", "payload": [n, "x".repeat(LONG)]}).to_string();
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [&[0x81, 0xFE][..], &length, &[0; 4], payload.as_bytes()].concat()
}

/// Receives this many broadcasts and results of one sender, each kind in order.
fn hears(socket: &mut Socket, broadcasts: usize, results: usize, so_far: &AtomicUsize) {
    let mut next = [0, 0];
    while next != [broadcasts, results] {
        let heard = hear(socket);
        let kind = usize::from(heard["type"] == "broadcastResult");
        assert_eq!(heard["payload"][0], next[kind]);
        assert!(kind == 0 || heard["listenerCount"] == 2, "{}", heard["listenerCount"]);
        next[kind] += 1;
        so_far.fetch_add(1, Relaxed);
    }
}

/// Writes until all is written, or until a write blocks for `longest`. Returns the number of bytes
/// written.
fn write_until_blocked(mut stream: &TcpStream, bytes: &[u8], longest: Duration) -> usize {
    stream.set_write_timeout(Some(longest)).unwrap();
    let mut taken = 0;
    while taken < bytes.len() {
        match stream.write(&bytes[taken..]) {
            Ok(some) => taken += some,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
    taken
}

/// While one process is stopped, the other stops reading from its clients when too much is queued for
/// the stopped one, so its memory stays bounded. After the process continues, everything arrives.
#[test]
fn a_stalled_process_causes_backpressure_and_no_message_is_lost() {
    const MANY: usize = 8_000;
    let server = Server::of("hub", "cluster", &[&["--cores", "2"], &PATIENT[..]].concat());
    let mut both = members_of_both(&server);
    let (stalled, mut listeners) = both.pop_first().unwrap();
    let (_, mut senders) = both.pop_first().unwrap();
    // Keep one member of each process.
    let (mut listener, mut sender) = (listeners.remove(0), senders.remove(0));
    for mut socket in listeners.into_iter().chain(senders) {
        socket.close(None).unwrap();
        closed(&mut socket);
    }
    let writes = sender.get_ref().0.try_clone().unwrap();
    let bytes: Vec<u8> = (0..MANY).flat_map(framed).collect();
    let before = server.memory();
    signal(stalled, "-STOP");
    let (copies, heard) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            sender.get_ref().0.set_read_timeout(Some(6 * crate::support::DEADLINE)).unwrap();
            hears(&mut sender, MANY, MANY, &copies);
        });
        let taken = write_until_blocked(&writes, &bytes, Duration::from_secs(1));
        let grown = server.memory().saturating_sub(before);
        println!("{taken} of {} bytes were taken; memory grew by {grown}", bytes.len());
        assert!(taken < bytes.len() / 2, "{taken} bytes were taken");
        assert!(copies.load(Relaxed) < 200, "{copies:?} were posted");
        assert!(grown < 8 << 20, "memory grew by {grown} bytes");
        signal(stalled, "-CONT");
        let listener = scope.spawn(|| hears(&mut listener, MANY, 0, &heard));
        let rest = write_until_blocked(&writes, &bytes[taken..], crate::support::DEADLINE);
        assert_eq!(taken + rest, bytes.len());
        sender.join().unwrap();
        listener.join().unwrap();
    });
}

/// A member of each process sends as fast as it can, both at the same time.
#[test]
fn processes_that_flood_each_other_do_not_deadlock() {
    const MANY: usize = 3_000;
    let server = Server::of("hub", "cluster", &[&["--cores", "2"], &PATIENT[..]].concat());
    let both = members_of_both(&server);
    let bytes: Vec<u8> = (0..MANY).flat_map(framed).collect();
    thread::scope(|scope| {
        let all: usize = both.values().map(Vec::len).sum();
        // One member of each process sends, all receive.
        for mut sockets in both.into_values() {
            let mut writes = sockets[0].get_ref().0.try_clone().unwrap();
            let bytes = &bytes;
            scope.spawn(move || writes.write_all(bytes).unwrap());
            for (n, mut socket) in sockets.drain(..).enumerate() {
                scope.spawn(move || {
                    let results = if n == 0 { MANY } else { 0 };
                    let mut seen = 0;
                    while seen < 2 * MANY + results {
                        let heard = hear(&mut socket);
                        let is_result = heard["type"] == "broadcastResult";
                        assert!(!is_result || heard["listenerCount"] == all, "{all}");
                        seen += 1;
                    }
                });
            }
        }
    });
}

#[test]
fn room_limits_are_refused() {
    for option in [["--max-room-members", "9"], ["--max-rooms", "9"]] {
        let printed = refused(regatta!("serve hub --model cluster").args(option));
        assert!(printed.contains("cluster") && printed.contains(option[0]), "{printed}");
        assert!(printed.contains("use percore"), "{printed}: says what to do");
    }
}

#[test]
fn the_member_limit_and_the_metrics_count_all_processes() {
    let (server, page) = hub("cluster", &["--cores", "2", "--max-members", "40"]);
    let mut both = members_of_both(&server);
    let count = both.values().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(metric(page, "regatta_hub_members"), count);
    let mut all: Vec<Socket> = both.values_mut().flat_map(std::mem::take).collect();
    all.extend((all.len()..40).map(|_| member(&server)));
    let refused = || {
        let mut stream = server.connect();
        let request = "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        head == *b"HTTP/1.1 503"
    };
    // Whichever process accepts the connection.
    assert!((0..8).all(|_| refused()));
    assert_eq!(metric(page, "regatta_hub_refused_total"), 8);
    assert_eq!(metric(page, "regatta_hub_members_total"), 40);
    for socket in &mut all {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo");
    }
    assert_eq!(metric(page, "regatta_hub_messages_total{type=\"echo\"}"), count + 40);
    drop(all);
    until("all have left", || metric(page, "regatta_hub_members") == 0);
}
