//! Connections beyond a model's capacity wait; they are not reset.

use crate::support::{DEADLINE, Server, until};
use regatta_serve::Model;
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Instant,
};

#[test]
fn connections_beyond_the_limit_of_select_wait() {
    const CLIENTS: usize = 1200;
    regatta_serve::raise_open_files();
    let holds = Model::Select.traits().limit.expect("a set is limited") as usize;
    let server = Server::double("select", &[]);
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| server.connect()).collect();
    for stream in &mut clients {
        stream.write_all(b"4\n").unwrap();
        stream.set_nonblocking(true).unwrap();
    }
    // As many as it can hold are served while all are open.
    let mut served = Vec::new();
    until("as many are served as the model holds", || {
        take_served(&mut clients, &mut served);
        served.len() >= holds
    });
    assert!(served.len() < CLIENTS, "a set of 1,024 descriptors holds them all");
    // The others are served as those close, a few at a time.
    let deadline = Instant::now() + DEADLINE;
    while !clients.is_empty() {
        served.truncate(served.len().saturating_sub(20));
        take_served(&mut clients, &mut served);
        assert!(Instant::now() < deadline, "{} clients were never served", clients.len());
    }
}

/// Moves clients that got their reply to `served`. A close or reset is a failure.
fn take_served(clients: &mut Vec<TcpStream>, served: &mut Vec<TcpStream>) {
    let mut lost = Vec::new();
    for mut stream in std::mem::take(clients) {
        let mut reply = [0; 8];
        match stream.read(&mut reply) {
            Ok(2) if &reply[..2] == b"8\n" => served.push(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => clients.push(stream),
            other => lost.push(format!("{other:?}")),
        }
    }
    let first = lost.first();
    assert!(lost.is_empty(), "{} clients were not served but closed: {first:?}", lost.len());
}
