//! Names of nodes. The tests give the proxy a table of names of its own, in a mount namespace.

use crate::support::{
    Server,
    shard::{client, nodes::Node, on_shard_models},
    until,
};
use regatta_testkit::skip;
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

/// A command that runs `regatta shard` with this table as `/etc/hosts`, if this machine permits it.
fn with_names(table: &Path) -> Option<Command> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"").arg("sh").arg(table);
    let mut trial = Command::new(command.get_program());
    let is_permitted = trial.args(command.get_args()).arg("true").output();
    if !is_permitted.is_ok_and(|output| output.status.success()) {
        skip("no mount namespace for the table of names");
        return None;
    }
    command.args([env!("CARGO_BIN_EXE_regatta"), "shard"]);
    Some(command)
}

on_shard_models!(a_node_that_listens_on_the_second_address_of_its_name_is_found: all);

fn a_node_that_listens_on_the_second_address_of_its_name_is_found(model: &str) {
    let (node, folder) = (Node::start(&[]), TempDir::new().unwrap());
    let table = folder.path().join("hosts");
    fs::write(&table, "::1 localhost\n127.0.0.3 localhost\n127.0.0.1 localhost\n").unwrap();
    let Some(mut command) = with_names(&table) else { return };
    let name = format!("localhost:{}", node.addr().port());
    command.args(["--model", model, "--nodes", &name]);
    let proxy = Server::start(command);
    assert_eq!(client(&proxy).say("SET k v"), "+OK\r\n", "{model}");
}

on_shard_models!(a_node_that_moves_is_found: epoll, percore, uring, threads, green);

fn a_node_that_moves_is_found(model: &str) {
    let (mut node, folder) = (Node::start(&[]), TempDir::new().unwrap());
    let port = node.addr().port();
    let table = folder.path().join("hosts");
    fs::write(&table, "127.0.0.1 node.test\n").unwrap();
    let Some(mut command) = with_names(&table) else { return };
    command.args(["--model", model, "--nodes", &format!("node.test:{port}")]);
    let proxy = Server::start(command);
    let mut client = client(&proxy);
    assert_eq!(client.say("SET k before"), "+OK\r\n", "{model}");
    node.kill();
    let moved = node.moved_to("127.0.0.2");
    fs::write(&table, "127.0.0.2 node.test\n").unwrap();
    until("the node is found", || client.say("SET k after") == "+OK\r\n");
    assert!(client.say("INFO").contains(&format!(",address=127.0.0.2:{port},")), "{model}");
    drop(moved);
}
