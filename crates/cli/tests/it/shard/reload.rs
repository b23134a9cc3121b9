//! Reloads at SIGHUP: the configuration changes while clients are served, and a file that is wrong changes nothing.

use crate::support::{
    Server, regatta,
    shard::{client, client::Client, nodes::Node, on_shard_models},
};
use regatta_proto::resp::write_command;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{ChildStderr, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};
use tempfile::TempDir;

/// A proxy with a configuration file.
struct Reloaded {
    server: Server,
    stderr: BufReader<ChildStderr>,
    path: PathBuf,
    _folder: TempDir,
}

impl Reloaded {
    fn start(model: &str, text: &str) -> Reloaded {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("shard.toml");
        fs::write(&path, text).unwrap();
        let mut server = Server::start(
            regatta!("shard --model {model} --config").arg(&path).stderr(Stdio::piped()),
        );
        let stderr = BufReader::new(server.child.stderr.take().unwrap());
        Reloaded { server, stderr, path, _folder: folder }
    }

    /// Writes the file and reloads. Returns what the proxy printed.
    fn reload(&mut self, text: &str) -> String {
        fs::write(&self.path, text).unwrap();
        self.server.signal("-HUP");
        // Lines about refused passwords may come before it.
        loop {
            let mut line = String::new();
            self.stderr.read_line(&mut line).unwrap();
            if !line.starts_with("regatta: password refused: ") {
                return line;
            }
        }
    }
}

/// A configuration with these nodes, and more lines.
fn nodes(nodes: &[String], more: &str) -> String {
    format!("nodes = {nodes:?}\n{more}")
}

/// Two nodes, and their addresses.
fn two() -> ([Node; 2], Vec<String>) {
    let all = [Node::start(&[]), Node::start(&[])];
    let addresses = all.each_ref().map(|node| node.addr().to_string()).to_vec();
    (all, addresses)
}

on_shard_models!(a_reload_applies_to_clients_that_are_connected: sharing);

fn a_reload_applies_to_clients_that_are_connected(model: &str) {
    let (_nodes, all) = two();
    let mut proxy = Reloaded::start(model, &nodes(&all, ""));
    let mut client = client(&proxy.server);
    let mset = "MSET a 1 b 2 c 3 d 4 e 5 f 6";
    assert_eq!(client.say(mset), "+OK\r\n", "{model}");
    let report = proxy.reload(&nodes(&all, "split_writes = \"refuse\"\nslowlog = \"0s\"\n"));
    assert!(report.ends_with("changed: slowlog, split_writes\n"), "{model}: {report}");
    assert!(client.say(mset).starts_with("-CROSSSLOT"), "{model}");
    assert_eq!(client.say("GET a"), "$1\r\n1\r\n", "{model}");
    assert_ne!(client.say("SLOWLOG LEN"), ":0\r\n", "{model}");
    let report = proxy.reload(&nodes(&all, ""));
    assert!(report.ends_with("changed: slowlog, split_writes\n"), "{model}: {report}");
    assert_eq!(client.say(mset), "+OK\r\n", "{model}");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_file_that_is_wrong_changes_nothing_and_its_line_is_reported() {
    let (_nodes, all) = two();
    let mut proxy = Reloaded::start("epoll", &nodes(&all, ""));
    let mut client = client(&proxy.server);
    client.say("SET a 1");
    let one = &all[..1];
    let swapped = [all[1].clone(), all[0].clone()];
    for (text, expected) in [
        (
            nodes(&all, "split_write = \"refuse\"\n"),
            "shard.toml, line 2: there is no key split_write",
        ),
        (nodes(&all, "split_writes = \"no\"\n"), "shard.toml, line 2: invalid value 'no'"),
        ("nodes = [\n".to_owned(), "shard.toml, line 1: unclosed array"),
        (nodes(&all, "password_file = \"/nowhere\"\n"), "cannot read /nowhere"),
        (nodes(one, "split_writes = \"refuse\"\n"), "it has 1 of 2 nodes"),
        (nodes(&swapped, "split_writes = \"refuse\"\n"), "100.0% of 10000 sample keys"),
        (
            nodes(&all, "map = \"redissharding\"\nsplit_writes = \"refuse\"\n"),
            "% of 10000 sample keys",
        ),
        (nodes(&["no such host:1".into(), all[1].clone()], ""), "no such host"),
    ] {
        let report = proxy.reload(&text);
        assert!(report.starts_with("regatta: the configuration stays as it is: "), "{report}");
        assert!(report.contains(expected), "{report}");
        assert_eq!(client.say("MSET a 1 b 2 c 3 d 4 e 5 f 6"), "+OK\r\n", "{text}");
    }
    let report = proxy.reload(&nodes(&all, "cores = 1\nlisten = \"127.0.0.1:1\"\n"));
    assert!(report.ends_with("these need a restart: cores, listen\n"), "{report}");
    let report = proxy.reload(&nodes(&all, "cores = 1\n"));
    assert!(report.ends_with("these need a restart: cores\n"), "{report}");
}

on_shard_models!(a_node_moves_without_an_error_and_without_a_crossed_reply: sharing);

/// The file names the nodes in two ways, in turn: each reload opens other connections to both. Clients count in their
/// own keys, with many requests in flight, so every lost, repeated or crossed request shows.
fn a_node_moves_without_an_error_and_without_a_crossed_reply(model: &str) {
    const CLIENTS: usize = 4;
    let (_nodes, all) = two();
    let others: Vec<String> =
        all.iter().map(|node| node.replace("127.0.0.1", "localhost")).collect();
    let mut proxy = Reloaded::start(model, &nodes(&all, "cores = 2\n"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (client, is_over) = (client(&proxy.server), &is_over);
                scope.spawn(move || count(client, number, is_over))
            })
            .collect();
        let mut reports = Vec::new();
        for number in 0..20 {
            let (nodes_, more) =
                (if number % 2 == 0 { &others } else { &all }, "cores = 2\nallow_remap = true\n");
            reports.push(proxy.reload(&nodes(nodes_, more)));
        }
        is_over.store(true, Relaxed);
        for client in clients {
            assert!(client.join().unwrap() > 100, "{model}");
        }
        assert!(reports[0].contains("changed: allow_remap, nodes"), "{model}: {reports:?}");
        assert!(reports[1..].iter().all(|report| report.contains("changed: nodes")), "{reports:?}");
    });
}

/// Counts in two keys until `is_over`, 50 requests at a time. Returns how many.
fn count(mut client: Client, number: usize, is_over: &AtomicBool) -> usize {
    let keys = [format!("a:{number}"), format!("b:{number}")];
    let mut counts = [0; 2];
    while !is_over.load(Relaxed) {
        let mut bytes = Vec::new();
        (0..50)
            .for_each(|turn| write_command([&b"INCR"[..], keys[turn % 2].as_bytes()], &mut bytes));
        client.raw(&bytes);
        for turn in 0..50 {
            counts[turn % 2] += 1;
            let reply = String::from_utf8(client.next().expect("a reply")).unwrap();
            assert_eq!(reply, format!(":{}\r\n", counts[turn % 2]), "client {number}");
        }
    }
    counts.iter().sum()
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn what_depends_on_a_node_that_moved_ends_and_what_depends_on_others_stays() {
    let (servers, all) = two();
    let mut proxy = Reloaded::start("epoll", &nodes(&all, ""));
    // A key of each node.
    let key = |node: &Node| {
        let mut direct = node.client();
        let mut through = client(&proxy.server);
        let keys = (0..).map(|number| format!("k{number}"));
        let is_there = |key: &String| {
            through.ask(&["SET", key, "1"]);
            direct.ask(&["EXISTS", key]) == b":1\r\n"
        };
        let mut keys = keys;
        keys.find(is_there).unwrap()
    };
    let keys = servers.each_ref().map(key);
    let mut watching = [client(&proxy.server), client(&proxy.server)];
    let mut subscribed = client(&proxy.server);
    for (client, key) in watching.iter_mut().zip(&keys) {
        assert_eq!(client.ask(&["WATCH", key]), b"+OK\r\n");
        assert_eq!(client.say("MULTI"), "+OK\r\n");
        assert_eq!(client.ask(&["INCR", key]), b"+QUEUED\r\n");
    }
    assert!(subscribed.ask(&["SUBSCRIBE", &keys[0]]).starts_with(b"*3"));
    let moved = [all[0].clone(), all[1].replace("127.0.0.1", "localhost")];
    let report = proxy.reload(&nodes(&moved, "allow_remap = true\n"));
    assert!(report.contains("changed: allow_remap, nodes"), "{report}");
    let [first, second] = &mut watching;
    assert_eq!(first.say("EXEC"), "*1\r\n:2\r\n", "the node is the same");
    let reply = second.say("EXEC");
    assert!(reply.starts_with("-SHARDMOVED"), "{reply}");
    assert_eq!(second.ask(&["GET", &keys[1]]), b"$1\r\n1\r\n");
    first.ask(&["PUBLISH", &keys[0], "hello"]);
    assert!(subscribed.next().unwrap().ends_with(b"hello\r\n"));
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn errors_of_a_server_that_a_reload_replaced_name_that_server() {
    let (mut servers, all) = two();
    let new = Node::start(&[]);
    let mut proxy = Reloaded::start("epoll", &nodes(&all, ""));
    let mut clients = [client(&proxy.server), client(&proxy.server), client(&proxy.server)];
    // `a` is on the second node, `b` on the first one.
    assert_eq!(clients[0].say("SET a 1"), "+OK\r\n");
    assert_eq!(servers[1].client().say("EXISTS a"), ":1\r\n");
    assert_eq!(clients[1].say("MULTI"), "+OK\r\n");
    assert_eq!(clients[1].say("SET a 2"), "+QUEUED\r\n");
    servers[1].client().say("CLIENT PAUSE 60000");
    clients[0].raw(b"SET a 3\r\n");
    clients[2].raw(b"MSET a 4 b 4\r\n");
    // When a later client is answered, both are sent.
    assert_eq!(client(&proxy.server).say("PING"), "+PONG\r\n");
    let moved = [all[0].clone(), new.addr().to_string()];
    let report = proxy.reload(&nodes(&moved, "allow_remap = true\n"));
    assert!(report.contains("changed: allow_remap, nodes"), "{report}");
    let old = format!("{} (before a reload): ", all[1]);
    let lost = clients[1].say("EXEC");
    assert!(lost.starts_with("-SHARDMOVED ") && lost.contains(&old), "{lost}");
    servers[1].kill();
    let whole = String::from_utf8(clients[0].next().unwrap()).unwrap();
    assert!(whole.starts_with(&format!("-SHARDDOWN node {old}")), "{whole}");
    let part = String::from_utf8(clients[2].next().unwrap()).unwrap();
    assert!(part.starts_with("-SHARDDOWN applied on 1 of 2 nodes; node "), "{part}");
    assert!(part.contains(&format!("node {}: ", all[1])), "{part}");
    assert!(part.contains(&format!("(at {}, before a reload)", all[1])), "{part}");
    // The new server is up.
    assert_eq!(clients[0].say("SET a 5"), "+OK\r\n");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_new_password_is_required_of_new_clients() {
    let (_nodes, all) = two();
    let mut proxy = Reloaded::start("percore", &nodes(&all, ""));
    let mut before = client(&proxy.server);
    assert_eq!(before.say("SET a 1"), "+OK\r\n");
    let file = proxy.path.with_file_name("password");
    fs::write(&file, "new\n").unwrap();
    proxy.reload(&nodes(&all, &format!("password_file = {file:?}\n")));
    let mut after = client(&proxy.server);
    assert!(after.say("GET a").starts_with("-NOAUTH"));
    assert_eq!(after.say("AUTH new"), "+OK\r\n");
    assert_eq!(after.say("GET a"), "$1\r\n1\r\n");
    assert_eq!(before.say("GET a"), "$1\r\n1\r\n", "it was permitted");
    // The content of the file counts.
    fs::write(&file, "newer\n").unwrap();
    let report = proxy.reload(&nodes(&all, &format!("password_file = {file:?}\n")));
    assert!(report.ends_with("changed: the passwords in the files\n"), "{report}");
    let mut last = client(&proxy.server);
    assert!(last.say("AUTH new").starts_with("-WRONGPASS"));
    assert_eq!(last.say("AUTH newer"), "+OK\r\n");
    // Without a password, a client that has not authenticated needs none.
    let mut waiting = client(&proxy.server);
    assert!(waiting.say("GET a").starts_with("-NOAUTH"));
    proxy.reload(&nodes(&all, ""));
    assert_eq!(waiting.say("GET a"), "$1\r\n1\r\n");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn who_checks_passwords_changes_only_at_a_restart() {
    let (_nodes, all) = two();
    let mut proxy = Reloaded::start("epoll", &nodes(&all, ""));
    let file = proxy.path.with_file_name("password");
    fs::write(&file, "x\n").unwrap();
    let report = proxy.reload(&nodes(&all, "auth = \"nodes\"\n"));
    assert!(report.ends_with("these need a restart: auth\n"), "{report}");
    assert!(client(&proxy.server).say("AUTH ann a").starts_with("-WRONGPASS"));
    let mut proxy = Reloaded::start("epoll", &nodes(&all, "auth = \"nodes\"\n"));
    let report = proxy.reload(&nodes(&all, &format!("password_file = {file:?}\n")));
    assert!(report.ends_with("these need a restart: auth, password_file\n"), "{report}");
    assert_eq!(client(&proxy.server).say("SET a 1"), "+OK\r\n");
}
