//! Limits on the number of clients, and the lines about clients that were refused. None of this needs a node.

use crate::support::{
    Server, on_models, regatta,
    shard::{client, client::Client, tls::Ca},
    until,
};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{ChildStderr, Stdio},
};
use tempfile::TempDir;

/// A proxy, and what it prints on stderr.
fn proxy(model: &str, more: &[&str]) -> (Server, BufReader<ChildStderr>) {
    let mut command = regatta!("shard --model {model} --cores 2 --nodes 127.0.0.1:1");
    command.args(more);
    let mut server = Server::start(command.stderr(Stdio::piped()));
    let stderr = BufReader::new(server.child.stderr.take().unwrap());
    (server, stderr)
}

fn line(stderr: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    line
}

/// What a client beyond a limit gets.
fn refused(server: &Server) -> String {
    let mut client = client(server);
    let error = client.next().expect("an error");
    assert_eq!(client.next(), None, "it is closed");
    String::from_utf8(error).unwrap()
}

fn served(server: &Server) -> Client {
    let mut client = client(server);
    assert_eq!(client.say("PING"), "+PONG\r\n");
    client
}

/// Waits until a client finds a place.
fn until_served(server: &Server) -> Client {
    let mut found = None;
    until("there is a place", || {
        let mut client = client(server);
        let is_served = client.try_send(&["PING"]).is_ok()
            && matches!(client.try_next(), Ok(Some(reply)) if reply == b"+PONG\r\n");
        found = is_served.then_some(client);
        is_served
    });
    found.unwrap()
}

on_models!(clients_beyond_a_limit_get_an_error: select, poll, epoll, percore, uring);

fn clients_beyond_a_limit_get_an_error(model: &str) {
    const MAX: &str = "-ERR max number of clients reached\r\n";
    const PER_ADDRESS: &str = "-ERR max number of clients per address reached\r\n";
    for (option, expected, reason) in [
        ("--max-clients", MAX, "max_clients"),
        ("--max-clients-per-address", PER_ADDRESS, "per_address"),
    ] {
        let (server, mut stderr) = proxy(model, &[option, "2", "--metrics", "127.0.0.1:0"]);
        let metrics = line(&mut stderr);
        let (one, _two) = (served(&server), served(&server));
        assert_eq!(refused(&server), expected, "{model}");
        let printed = line(&mut stderr);
        let expected_line = format!("regatta: connection refused: reason={reason} count=1 ");
        assert!(printed.starts_with(&expected_line), "{model}: {printed}");
        assert!(printed.ends_with(" detail=\"limit 2, from 127.0.0.1\"\n"), "{model}: {printed}");
        for _ in 0..5 {
            assert_eq!(refused(&server), expected, "{model}");
        }
        // One more line, unless this took longer than a second.
        let mut count = 0;
        while count < 5 {
            let line = line(&mut stderr);
            let (start, rest) = line.split_once(" count=").unwrap_or_else(|| panic!("{line}"));
            assert_eq!(start, format!("regatta: connection refused: reason={reason}"), "{model}");
            count += rest.split(' ').next().unwrap().parse::<u32>().unwrap();
        }
        assert_eq!(count, 5, "{model}");
        drop(one);
        let _three = until_served(&server);
        let host = metrics.trim().strip_prefix("metrics at http://").unwrap();
        let mut page = TcpStream::connect(host.strip_suffix("/metrics").unwrap()).unwrap();
        page.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        page.read_to_string(&mut text).unwrap();
        let family = format!("regatta_shard_clients_refused_total{{reason=\"{reason}\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&family)).unwrap();
        assert!(count.parse::<u64>().unwrap() >= 6, "{model}: {count}");
        assert!(text.contains("regatta_shard_clients 2\n"), "{model}: {text}");
    }
}

on_models!(limits_change_at_a_reload: epoll, uring);

fn limits_change_at_a_reload(model: &str) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shard.toml");
    let write =
        |more: &str| fs::write(&path, format!("nodes = [\"127.0.0.1:1\"]\n{more}")).unwrap();
    write("");
    let mut server =
        Server::start(regatta!("shard --model {model} --config").arg(&path).stderr(Stdio::piped()));
    let mut stderr = BufReader::new(server.child.stderr.take().unwrap());
    let mut reload = |more: &str| {
        write(more);
        server.signal("-HUP");
        // Lines about clients that were refused may come before it.
        loop {
            let line = line(&mut stderr);
            if !line.contains("refused") {
                return line;
            }
        }
    };
    let clients: Vec<Client> = (0..3).map(|_| served(&server)).collect();
    let report = reload("max_clients_per_address = 2\n");
    assert!(report.ends_with("changed: max_clients_per_address\n"), "{model}: {report}");
    assert!(refused(&server).contains(" per address "), "{model}");
    let report = reload("max_clients_per_address = 4\nmax_clients = 3\n");
    assert!(report.contains("changed: max_clients, max_clients_per_address"), "{model}: {report}");
    assert!(!refused(&server).contains(" per address "), "{model}");
    reload("");
    let _four = served(&server);
    for mut client in clients {
        assert_eq!(client.say("PING"), "+PONG\r\n", "{model}: who is connected stays");
    }
}

#[test]
fn a_tls_handshake_that_fails_is_printed() {
    let ca = Ca::new("A");
    let own = ca.sign("proxy").options("");
    let options: Vec<&str> = own.iter().map(String::as_str).collect();
    let (server, mut stderr) = proxy("epoll", &options);
    // Checks whether the port is open.
    drop(server.connect());
    let mut stream = server.connect();
    stream.write_all(b"PING\r\nthis is not TLS\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let line = line(&mut stderr);
    assert!(
        line.starts_with("regatta: connection refused: reason=tls_handshake count=1 "),
        "{line}"
    );
}

#[test]
fn the_begin_and_the_end_of_a_drain_are_printed() {
    let (mut server, mut stderr) = proxy("percore", &["--drain", "1s"]);
    let _clients = [served(&server), served(&server)];
    server.signal("-TERM");
    assert_eq!(line(&mut stderr), "regatta: drain begins: clients=2 drain=\"1s\"\n");
    let ended = line(&mut stderr);
    assert!(ended.starts_with("regatta: drain ended: clients="), "{ended}");
    assert!(server.ended().success());
}
