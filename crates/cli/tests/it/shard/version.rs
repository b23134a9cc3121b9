//! The version of Redis that clients see: the lowest of the nodes.

use crate::support::{
    on_models,
    shard::{client, proxy_to},
};
use regatta_keyspace::command::VERSION;
use regatta_proto::resp::{CommandLimits, Commands, write_bulk};
use regatta_testkit::server::Server;
use std::{
    io::{Read, Write},
    iter,
    net::TcpStream,
};

/// Starts a node of this version, which answers everything except INFO with OK.
fn node_of(version: &'static str) -> Server {
    Server::start(move |_, stream| serve(stream, version))
}

fn serve(mut stream: TcpStream, version: &str) {
    let mut commands = Commands::new(CommandLimits::default());
    let (mut input, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        input.extend_from_slice(&buffer[..read]);
        let mut out = Vec::new();
        while let Ok((taken @ 1.., command)) = commands.next(&input) {
            match command.map(|command| command.args().eq([&b"INFO"[..], b"server"])) {
                Some(true) => {
                    let info = format!("# Server\r\nredis_version:{version}\r\nos:Linux\r\n");
                    write_bulk(info.as_bytes(), &mut out);
                }
                Some(false) => out.extend_from_slice(b"+OK\r\n"),
                None => {}
            }
            input.drain(..taken);
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

on_models!(clients_see_the_lowest_version_of_the_nodes: select, poll, epoll, percore, uring);

fn clients_see_the_lowest_version_of_the_nodes(model: &str) {
    let nodes = [node_of("7.4.2"), node_of("6.2.14")];
    let proxy = proxy_to(model, nodes.iter().map(|node| node.addr), &["--cores", "2"]);
    let mut client = client(&proxy);
    let mut sees = |version: &str| {
        let info = client.say("INFO server");
        assert!(info.contains(&format!("\r\nredis_version:{version}\r\n")), "{model}: {info}");
        let hello = client.say("HELLO");
        let expected = format!("$7\r\nversion\r\n${}\r\n{version}\r\n", version.len());
        assert!(hello.contains(&expected), "{model}: {hello}");
        // The first key of each node, in turn.
        let key = if version == VERSION { "b" } else { "a" };
        assert_eq!(client.say(&format!("SET {key} 1")), "+OK\r\n", "{model}");
    };
    // Until a node has reported its own, it is that of the table of commands.
    sees(VERSION);
    sees("7.4.2");
    sees("6.2.14");
}

on_models!(sections_of_info_can_be_requested: select, poll, epoll, percore, uring, threads);

fn sections_of_info_can_be_requested(model: &str) {
    let node = node_of("7.4.2");
    let proxy = proxy_to(model, iter::once(node.addr), &[]);
    let mut client = client(&proxy);
    let text = "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
    let expected = format!("${}\r\n{text}\r\n", text.len());
    assert_eq!(client.say("INFO Replication"), expected, "{model}");
    assert_eq!(client.say("INFO nothing"), "$0\r\n\r\n", "{model}");
    let all = client.say("INFO");
    assert!(all.contains("\r\n\r\n# Keyspace\r\n"), "{model}: {all}");
    // The number of connections is the same, and so is all else.
    assert_eq!(client.say("INFO everything"), all, "{model}");
    assert_eq!(client.say("INFO all keyspace"), all, "{model}");
}
