//! A process of `cluster` that is killed during a drain.

use crate::support::{
    Server,
    hub::{Socket, hear, member, send},
    regatta, until,
};
use serde_json::json;
use std::{net::TcpStream, process::Command};

#[test]
fn the_drain_ends_when_a_process_is_killed_and_the_hub_fails() {
    let mut server = Server::start(regatta!("hub --model cluster --cores 2 --drain 1h --grace 1s"));
    let mut members: Vec<Socket> = (0..20).map(|_| member(&server)).collect();
    server.signal("-TERM");
    until("nobody is admitted", || TcpStream::connect(server.addr).is_err());
    // It is not their turn yet.
    let echo = json!({"type": "echo", "payload": 1});
    let served = members.iter_mut().filter_map(|socket| {
        send(socket, &echo);
        (hear(socket) == echo).then_some(())
    });
    assert!(served.count() >= 19);
    let main = server.child.id();
    let processes = server.processes().into_iter().map(|(pid, _)| pid);
    let process = processes.filter(|pid| *pid != main).max().expect("two processes");
    let killed = Command::new("kill").args(["-KILL", &process.to_string()]).status();
    assert!(killed.unwrap().success());
    assert!(!server.ended().success());
}
