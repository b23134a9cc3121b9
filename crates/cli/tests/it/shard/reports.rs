//! What the proxy prints about its nodes on stderr.

use crate::support::{
    Server, regatta,
    shard::{client, nodes::Node, on_shard_models},
    until,
};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

on_shard_models!(a_node_that_is_down_is_printed_once_and_so_is_its_return: sharing);

fn a_node_that_is_down_is_printed_once_and_so_is_its_return(model: &str) {
    let mut node = Node::start(&[]);
    let address = node.addr().to_string();
    let mut command = regatta!("shard --model {model} --cores 2 --nodes {address}");
    let mut proxy = Server::start(command.stderr(Stdio::piped()));
    let mut stderr = BufReader::new(proxy.child.stderr.take().unwrap());
    let mut clients: Vec<_> = (0..6).map(|_| client(&proxy)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.say("SET a 1"), "+OK\r\n"));
    node.kill();
    for client in &mut clients {
        until("the node is down", || client.say("GET a").starts_with("-SHARDDOWN"));
    }
    let mut printed = |expected: &str| {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert_eq!(line, format!("regatta: node {address}: {expected}\n"), "{model}");
    };
    printed(&format!("down ({address}): cannot connect"));
    node.revive();
    for client in &mut clients {
        until("the node is up", || client.say("GET a") == "$-1\r\n");
    }
    printed("up again");
}
