//! The proxy over TLS: with its clients, and with real nodes.

use crate::support::{
    DEADLINE, Server, refused, regatta,
    shard::{
        client,
        nodes::Node,
        on_shard_models, proxy,
        tls::{Ca, TlsClient, text},
    },
    until,
};
use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Starts a proxy with these options. What it prints on stderr is in the file `printed`.
fn proxy_printing(model: &str, nodes: &[Node], options: &[String], printed: &Path) -> Server {
    let addresses: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
    let mut command = regatta!("shard --model {model} --nodes {}", addresses.join(","));
    Server::start(command.args(options).stderr(fs::File::create(printed).unwrap()))
}

/// The options for TLS on both sides, where the nodes require a certificate of the proxy.
fn both_sides(ca: &Ca) -> Vec<String> {
    let own = ca.sign("proxy");
    let options = [own.options(""), own.options("node-")].concat();
    [options, vec!["--node-tls-ca".into(), text(&ca.file()).into()]].concat()
}

fn two_nodes(ca: &Ca) -> [Node; 2] {
    [ca.node(&ca.sign("one"), true), ca.node(&ca.sign("two"), true)]
}

fn strs(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

on_shard_models!(everything_works_over_tls_on_both_sides: sharing);

fn everything_works_over_tls_on_both_sides(model: &str) {
    let ca = Ca::new("A");
    let nodes = two_nodes(&ca);
    let proxy = proxy(model, &nodes, &strs(&both_sides(&ca)));
    let config = ca.client(None);
    let mut client = TlsClient::connect(&proxy, &config);
    assert_eq!(client.say("MSET a 1 b 2 c 3 d 4"), "+OK\r\n", "{model}");
    assert_eq!(client.say("DBSIZE"), ":4\r\n", "{model}");
    assert_eq!(client.say("MULTI"), "+OK\r\n", "{model}");
    assert_eq!(client.say("INCR a"), "+QUEUED\r\n", "{model}");
    assert_eq!(client.say("EXEC"), "*1\r\n:2\r\n", "{model}");
    let mut other = TlsClient::connect(&proxy, &config);
    assert!(other.say("SUBSCRIBE news").starts_with("*3\r\n"), "{model}");
    assert_eq!(client.say("PUBLISH news x"), ":1\r\n", "{model}");
    let message = other.next().unwrap().unwrap();
    assert_eq!(message, b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n", "{model}");
    let mut blocked = TlsClient::connect(&proxy, &config);
    blocked.raw(b"BLPOP list 0\r\n").unwrap();
    until("the client is blocked", || client.say("LPUSH list x") == ":1\r\n");
    assert_eq!(blocked.next().unwrap().unwrap(), b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n", "{model}");
    // The certificate of a client is not required, and not refused.
    let mut known = TlsClient::connect(&proxy, &ca.client(Some(&ca.sign("client"))));
    assert_eq!(known.say("GET b"), "$1\r\n2\r\n", "{model}");
    // In TLS as in Redis, a client may close its sending side and read all replies.
    known.raw(b"GET c\r\nGET d\r\n").unwrap();
    known.stream.conn.send_close_notify();
    known.stream.flush().unwrap();
    known.stream.sock.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(known.next().unwrap().unwrap(), b"$1\r\n3\r\n", "{model}");
    assert_eq!(known.next().unwrap().unwrap(), b"$1\r\n4\r\n", "{model}");
    assert_eq!(known.next().unwrap(), None, "{model}: it ends with a close_notify");
}

on_shard_models!(clients_over_tls_leave_in_a_drain_as_others_do: epoll, uring);

/// One that asks for it is requested to reconnect, and one that sends requests is closed behind a reply.
fn clients_over_tls_leave_in_a_drain_as_others_do(model: &str) {
    let ca = Ca::new("A");
    let nodes = two_nodes(&ca);
    let options = [both_sides(&ca), vec!["--drain".into(), "2s".into()]].concat();
    let mut proxy = proxy(model, &nodes, &strs(&options));
    let config = ca.client(None);
    let mut asks = TlsClient::connect(&proxy, &config);
    assert!(asks.say("HELLO 3").starts_with('%'), "{model}");
    assert_eq!(asks.say("CLIENT MAINT_NOTIFICATIONS ON"), "+OK\r\n", "{model}");
    // Each gets a random moment of the drain.
    let mut busy: Vec<TlsClient> = (0..6).map(|_| TlsClient::connect(&proxy, &config)).collect();
    for client in &mut busy {
        assert_eq!(client.say("SET a 1"), "+OK\r\n", "{model}");
    }
    proxy.signal("-TERM");
    let push = asks.next().unwrap().unwrap();
    assert!(push.starts_with(b">4\r\n"), "{model}: {}", push.escape_ascii());
    let is_open = |client: &mut TlsClient| match client.try_ask(&["GET", "a"]) {
        Ok(reply) => reply == b"$1\r\n1\r\n",
        Err(_) => false,
    };
    while busy.iter_mut().all(is_open) {
        thread::sleep(Duration::from_millis(5)); // the pace of the clients
    }
    assert_eq!(asks.say("PING"), "+PONG\r\n", "{model}: before the end of the drain");
    drop(busy);
    drop(asks);
    assert!(proxy.ended().success(), "{model}");
}

on_shard_models!(large_values_and_pipelines_arrive_over_tls: epoll, percore, uring);

fn large_values_and_pipelines_arrive_over_tls(model: &str) {
    const PIPELINE: usize = 5000;
    let ca = Ca::new("A");
    let nodes = two_nodes(&ca);
    let proxy = proxy(model, &nodes, &strs(&both_sides(&ca)));
    let config = ca.client(None);
    let mut client = TlsClient::connect(&proxy, &config);
    let value: Vec<u8> = (0..9_000_000_usize).map(|place| (place * 7 / 3) as u8).collect();
    assert_eq!(client.try_ask(&[&b"SET"[..], b"large", &value]).unwrap(), b"+OK\r\n", "{model}");
    for _ in 0..3 {
        let reply = client.try_ask(&["GET", "large"]).unwrap();
        assert!(reply.len() == value.len() + 12 && reply[10..].starts_with(&value), "{model}");
    }
    let mut clients: Vec<_> = (0..4).map(|_| TlsClient::connect(&proxy, &config)).collect();
    for client in &mut clients {
        let requests: String = (0..PIPELINE).map(|number| format!("ECHO {number}\r\n")).collect();
        client.raw(requests.as_bytes()).unwrap();
    }
    for client in &mut clients {
        for number in 0..PIPELINE {
            let number = number.to_string();
            let expected = format!("${}\r\n{number}\r\n", number.len()).into_bytes();
            assert_eq!(client.next().unwrap().unwrap(), expected, "{model}");
        }
    }
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("the program starts")
}

on_shard_models!(other_programs_use_it: epoll, percore, uring);

/// redis-cli, and a load that checks every reply.
fn other_programs_use_it(model: &str) {
    let ca = Ca::new("A");
    let nodes = two_nodes(&ca);
    let own = ca.sign("client");
    let ca_file = ca.file();
    let mut options = both_sides(&ca);
    options.extend(["--tls-client-ca".into(), text(&ca_file).into()]);
    let requiring = proxy(model, &nodes, &strs(&options));
    let port = requiring.addr.port().to_string();
    let tls = ["-p", &port, "--tls", "--cacert", text(&ca_file)];
    let certificate = ["--cert", text(&own.certificate), "--key", text(&own.key)];
    let output = run("redis-cli", &[&tls[..], &certificate, &["PING"]].concat());
    assert_eq!(output.stdout, b"PONG\n", "{model}: {output:?}");
    let output = run("redis-cli", &[&tls[..], &["PING"]].concat());
    assert!(!output.stdout.starts_with(b"PONG"), "{model}: without a certificate: {output:?}");
    // The load has no certificate.
    let proxy = proxy(model, &nodes, &strs(&both_sides(&ca)));
    let url = format!("rediss://localhost:{}", proxy.addr.port());
    let load =
        ["load", &url, "--cacert", text(&ca_file), "-c", "8", "-d", "500ms", "--warm-up", "0s"];
    let output = run(env!("CARGO_BIN_EXE_regatta"), &[&load[..], &["--json", "-"]].concat());
    assert!(output.status.success(), "{model}: {output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["requests"].as_u64().unwrap() > 100, "{model}: {result}");
}

on_shard_models!(a_client_without_a_certificate_is_refused: epoll, uring);

fn a_client_without_a_certificate_is_refused(model: &str) {
    let (ca, other) = (Ca::new("A"), Ca::new("B"));
    let node = Node::start(&[]);
    let ca_file = ca.file();
    let options = [&ca.sign("proxy").options("")[..], &["--tls-client-ca".into()]].concat();
    let options = [options, vec![text(&ca_file).into()]].concat();
    let proxy = proxy(model, std::slice::from_ref(&node), &strs(&options));
    let mut good = TlsClient::connect(&proxy, &ca.client(Some(&ca.sign("client"))));
    assert_eq!(good.say("SET k v"), "+OK\r\n", "{model}");
    for own in [None, Some(other.sign("stranger"))] {
        let mut refused = TlsClient::connect(&proxy, &ca.client(own.as_ref()));
        let error = refused.try_ask(&["SET", "k", "stolen"]).expect_err("it is refused");
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "{model}: it is closed");
    }
    assert_eq!(good.say("GET k"), "$1\r\nv\r\n", "{model}");
    // They were no clients.
    let info = good.say("INFO");
    assert!(info.contains("total_connections_received:1\r\n"), "{model}: {info}");
}

on_shard_models!(a_node_with_a_wrong_certificate_is_down: sharing);

fn a_node_with_a_wrong_certificate_is_down(model: &str) {
    let (ca, other) = (Ca::new("A"), Ca::new("B"));
    let (right, old) = (ca.sign("node"), ca.sign_until("old", 2001));
    let mut nodes = [ca.node(&right, false), other.node(&other.sign("node"), false)];
    let printed = ca.file().with_file_name("printed");
    let options = ["--node-tls-ca".to_owned(), text(&ca.file()).to_owned()];
    let proxy = proxy_printing(model, &nodes, &options, &printed);
    let mut client = client(&proxy);
    let name = nodes[1].addr();
    let down = |why: &str| format!("-SHARDDOWN node {name}: no TLS connection: {why}");
    // `a` is at the second node, `b` at the first.
    assert_eq!(client.say("SET b 1"), "+OK\r\n", "{model}");
    let untrusted = "the server's certificate is not signed by a trusted CA";
    for _ in 0..3 {
        let reply = client.say("SET a 1");
        assert_eq!(reply, down(untrusted) + "\r\n", "{model}");
    }
    nodes[1].restart_tls(&ca.node_options(&old, false));
    until("the expired certificate is reported", || {
        client.say("SET a 1") == down("the server's certificate has expired") + "\r\n"
    });
    nodes[1].restart_tls(&ca.node_options(&right, true));
    until("the missing certificate is reported", || {
        client.say("SET a 1").starts_with(&down("the server requires a client certificate"))
    });
    nodes[1].restart_tls(&ca.node_options(&right, false));
    until("the node is up", || client.say("SET a 1") == "+OK\r\n");
    let text = || fs::read_to_string(&printed).unwrap();
    // A thread of its own prints.
    until("it is printed", || text().contains("TLS works again"));
    let count = |part: &str| text().matches(part).count();
    assert_eq!((count(untrusted), count("expired")), (1, 1), "{model}: {}", text());
}

on_shard_models!(renewed_certificates_are_used_under_load: epoll, percore, uring);

/// The proxy's certificate is renewed by another CA, and so are the CA and the certificate of the node.
fn renewed_certificates_are_used_under_load(model: &str) {
    let (ca, next) = (Ca::new("A"), Ca::new("B"));
    let own = ca.sign_until("proxy", 2001);
    let mut nodes = [ca.node(&ca.sign("node"), false)];
    let trusted = ca.file().with_file_name("trusted");
    fs::copy(ca.file(), &trusted).unwrap();
    let options = [&own.options("")[..], &["--node-tls-ca".into(), text(&trusted).into()]].concat();
    let printed = ca.file().with_file_name("printed");
    let proxy = proxy_printing(model, &nodes, &options, &printed);
    let error =
        TlsClient::connect(&proxy, &ca.client(None)).try_ask(&["PING"]).expect_err("expired");
    assert!(error.to_string().contains("xpired"), "{model}: {error}");
    let replace = |signed: &crate::support::shard::tls::Signed| {
        fs::rename(&signed.certificate, &own.certificate).unwrap();
        fs::rename(&signed.key, &own.key).unwrap();
    };
    replace(&ca.sign("valid"));
    let works = |of: &Ca| TlsClient::connect(&proxy, &of.client(None)).try_ask(&["PING"]).is_ok();
    until("the valid certificate is used", || works(&ca));
    let mut stays = TlsClient::connect(&proxy, &ca.client(None));
    assert_eq!(stays.say("SET k 0"), "+OK\r\n", "{model}");
    let (stop, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = TlsClient::connect(&proxy, &ca.client(None));
                while !stop.load(Relaxed) {
                    assert!(client.say("INCR k").starts_with(':'), "{model}");
                    requests.fetch_add(1, Relaxed);
                }
            });
        }
        replace(&next.sign("renewed"));
        until("the renewed certificate is used", || works(&next));
        assert!(!works(&ca), "{model}");
        stop.store(true, Relaxed);
    });
    let count = requests.load(Relaxed);
    assert_eq!(stays.say("GET k").lines().nth(1), Some(&count.to_string()[..]), "{model}");
    assert!(count > 0, "{model}");
    // A node is trusted once its CA is. A file that cannot be used is reported once.
    fs::write(&trusted, "nonsense").unwrap();
    nodes[0].restart_tls(&next.node_options(&next.sign("node"), false));
    let printed = || fs::read_to_string(&printed).unwrap();
    until("the file is reported", || {
        assert_ne!(stays.say("SET k 1"), "+OK\r\n", "{model}");
        printed().contains("the previous certificate stays in use")
    });
    fs::copy(next.file(), &trusted).unwrap();
    until("the node is trusted", || stays.say("SET k 1") == "+OK\r\n");
    assert_eq!(printed().matches("the previous certificate stays").count(), 1, "{model}");
}

on_shard_models!(clients_that_do_not_finish_a_handshake_are_closed: sharing);

fn clients_that_do_not_finish_a_handshake_are_closed(model: &str) {
    let ca = Ca::new("A");
    let node = Node::start(&[]);
    let options = [&ca.sign("proxy").options("")[..], &["--request-timeout".into(), "1s".into()]];
    let proxy = proxy(model, std::slice::from_ref(&node), &strs(&options.concat()));
    let mut idle = TlsClient::connect(&proxy, &ca.client(None));
    assert_eq!(idle.say("PING"), "+PONG\r\n", "{model}");
    let mut received = Vec::new();
    for plain in [&b"PING\r\n"[..], b"*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stranger = proxy.connect();
        stranger.write_all(plain).unwrap();
        received.clear();
        let _ = stranger.read_to_end(&mut received);
        // A record of the type alert (RFC 8446, 5.1).
        assert_eq!(received.first(), Some(&21), "{model}: {received:?}");
    }
    for begun in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"] {
        let mut slow = proxy.connect();
        slow.write_all(begun).unwrap();
        let start = Instant::now();
        let _ = slow.read_to_end(&mut received);
        let took = start.elapsed();
        assert!(took > Duration::from_millis(500) && took < DEADLINE, "{model}: {took:?}");
    }
    // So is half a record, even if another byte arrives now and then.
    let mut half = TlsClient::connect(&proxy, &ca.client(None));
    assert_eq!(half.say("PING"), "+PONG\r\n", "{model}");
    let mut socket = half.stream.sock.0.try_clone().unwrap();
    socket.write_all(&[23, 3, 3, 0, 200]).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let start = Instant::now();
    loop {
        let _ = socket.write(&[0]);
        match socket.read(&mut [0; 4096]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok(read) if read > 0 => {}
            _ => break,
        }
        assert!(start.elapsed() < DEADLINE, "{model}: half a record");
    }
    assert_eq!(idle.say("PING"), "+PONG\r\n", "{model}: it is not in the middle of anything");
}

on_shard_models!(a_stop_answers_what_was_read_over_tls: epoll, percore, uring);

fn a_stop_answers_what_was_read_over_tls(model: &str) {
    let ca = Ca::new("A");
    let nodes = two_nodes(&ca);
    let mut proxy = proxy(model, &nodes, &strs(&both_sides(&ca)));
    let mut client = TlsClient::connect(&proxy, &ca.client(None));
    let value = vec![b'x'; 3_000_000];
    assert_eq!(client.try_ask(&[&b"SET"[..], b"k", &value]).unwrap(), b"+OK\r\n", "{model}");
    let mut shaking = proxy.connect();
    shaking.write_all(b"\x16\x03\x01").unwrap();
    client.raw(b"ECHO first\r\nGET k\r\n").unwrap();
    assert_eq!(client.next().unwrap().unwrap(), b"$5\r\nfirst\r\n", "{model}");
    proxy.signal("-TERM");
    assert_eq!(client.next().unwrap().unwrap().len(), value.len() + 12, "{model}");
    assert_eq!(client.next().unwrap(), None, "{model}: it ends with a close_notify");
    drop(client);
    assert!(proxy.ended().success(), "{model}");
}

on_shard_models!(idle_clients_need_little_memory: epoll, uring);

/// Also after a large request and reply: no buffer of TLS stays.
fn idle_clients_need_little_memory(model: &str) {
    const CLIENTS: usize = 300;
    let ca = Ca::new("A");
    let node = Node::start(&[]);
    // Long buffers that it frees leave the process at once.
    let mut command = regatta!("shard --model {model} --cores 1 --nodes {}", node.addr());
    command.args(ca.sign("proxy").options("")).env("MALLOC_MMAP_THRESHOLD_", "65536");
    let proxy = Server::start(command);
    let config = ca.client(None);
    let value = vec![b'x'; 200_000];
    let connect = || {
        let mut client = TlsClient::connect(&proxy, &config);
        client.try_ask(&[&b"SET"[..], b"k", &value]).unwrap();
        client.try_ask(&["GET", "k"]).unwrap();
        client
    };
    let mut clients: Vec<TlsClient> = (0..20).map(|_| connect()).collect();
    let before = proxy.memory();
    clients.extend((0..CLIENTS).map(|_| connect()));
    let each = proxy.memory().saturating_sub(before) / CLIENTS as u64;
    println!("{model}: {each} bytes for an idle client");
    assert!(each < 24 * 1024, "{model}: {each} bytes for an idle client");
}

on_shard_models!(attackers_take_bounded_memory: epoll, uring);

/// Strangers that begin a handshake as long as TLS permits, and clients that do not read.
fn attackers_take_bounded_memory(model: &str) {
    const STRANGERS: u64 = 200;
    let ca = Ca::new("A");
    let node = Node::start(&[]);
    // Long buffers that it frees leave the process at once.
    let limits = "--request-timeout 2s --client-buffer 2 --all-buffers 16";
    let mut command = regatta!("shard --model {model} --cores 1 --nodes {} {limits}", node.addr());
    command.args(ca.sign("proxy").options("")).env("MALLOC_MMAP_THRESHOLD_", "32768");
    let proxy = Server::start(command);
    let config = ca.client(None);
    let mut good = TlsClient::connect(&proxy, &config);
    let value = vec![b'x'; 1_000_000];
    assert_eq!(good.try_ask(&[&b"SET"[..], b"k", &value]).unwrap(), b"+OK\r\n", "{model}");
    let before = proxy.memory();
    // A ClientHello of 65,000 bytes in several records, without its last byte.
    let hello = [&[1, 0, 0xfd, 0xe8][..], &[0; 64_999]].concat();
    let records = hello
        .chunks(16_000)
        .map(|part| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat());
    let hello = records.collect::<Vec<_>>().concat();
    // What was held for the first ones is free for the next.
    for _ in 0..3 {
        let connect = |_| {
            let mut stranger = proxy.connect();
            // It may have been refused already.
            let _ = stranger.write_all(&hello);
            stranger
        };
        let strangers: Vec<_> = (0..STRANGERS).map(connect).collect();
        assert_eq!(good.say("PING"), "+PONG\r\n", "{model}");
        let most = proxy.memory().saturating_sub(before);
        assert!(most < STRANGERS * 100 * 1024, "{model}: {most} bytes");
        for mut stranger in strangers {
            let _ = stranger.read_to_end(&mut Vec::new());
        }
    }
    let mut deaf: Vec<_> = (0..20).map(|_| TlsClient::connect(&proxy, &config)).collect();
    for client in &mut deaf {
        client.raw(&b"GET k\r\n".repeat(100)).unwrap();
        assert_eq!(good.say("PING"), "+PONG\r\n", "{model}");
    }
    let most = proxy.memory().saturating_sub(before);
    println!("{model}: {most} bytes for clients that do not read");
    assert!(most < 64 << 20, "{model}: {most} bytes");
}

#[test]
fn what_cannot_be_used_is_refused_at_the_start() {
    let (ca, other) = (Ca::new("A"), Ca::new("B"));
    let (own, wrong, file) = (ca.sign("own"), other.sign("own"), ca.file());
    let (certificate, key) = (text(&own.certificate), text(&own.key));
    for (options, expected) in [
        (vec!["--tls-cert", certificate], "--tls-key"),
        (vec!["--node-tls-cert", certificate, "--node-tls-key", key], "--node-tls-ca"),
        (vec!["--tls-client-ca", text(&file)], "--tls-cert"),
        (
            vec!["--tls-cert", certificate, "--tls-key", text(&wrong.key)],
            "does not match the key in",
        ),
        (vec!["--node-tls-ca", "/no/such"], "cannot read /no/such"),
        (vec!["--node-tls-ca", key], "contains no certificate in PEM format"),
        (
            vec!["--node-tls-ca", text(&file), "--node-tls-server-name", "a b"],
            "a b: expected a host name or an IP address",
        ),
        (
            vec!["--node-tls-ca", text(&file), "--model", "threads"],
            "the model `threads` runs `shard` only without --node-tls-ca: TLS needs a model whose",
        ),
        (
            vec!["--tls-cert", certificate, "--tls-key", key, "--model", "prefork"],
            "use percore, uring, epoll, poll or select",
        ),
    ] {
        let error = refused(regatta!("shard --nodes 127.0.0.1:1 --check").args(&options));
        assert!(error.contains(expected), "{options:?}: {error}");
    }
}
