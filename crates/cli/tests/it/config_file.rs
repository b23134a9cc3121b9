//! Configuration files of `regatta hub` and `regatta shard`, and `--check`.

use crate::support::{
    Server,
    hub::{closed, member},
    refused, regatta, run,
    shard::{client, nodes::Node},
};
use std::{fs, path::PathBuf, process::Command};
use tempfile::TempDir;
use tungstenite::protocol::frame::coding::CloseCode;

/// A file with this text, and its folder.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("regatta.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

/// `regatta COMMAND --config` with a file of this text.
fn with_file(command: &str, text: &str) -> (TempDir, Command) {
    let (folder, path) = file(text);
    let mut started = regatta!("{command} --config");
    started.arg(path);
    (folder, started)
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn the_proxy_serves_the_nodes_of_its_file() {
    let nodes = [Node::start(&[]), Node::start(&[])];
    let ports = nodes.each_ref().map(|node| node.addr().port());
    let text = format!(
        "# Two nodes.\nnodes = [\"127.0.0.1:{}\", \"localhost:{}\"]\nsplit_writes = \"refuse\"\ncores = 1\n",
        ports[0], ports[1]
    );
    let (_folder, command) = with_file("shard", &text);
    let proxy = Server::start(command);
    let mut client = client(&proxy);
    assert_eq!(client.say("SET k v"), "+OK\r\n");
    let reply = client.say("MSET a 1 b 2 c 3 d 4 e 5 f 6");
    assert!(reply.starts_with("-CROSSSLOT"), "{reply}");
}

#[test]
fn an_option_of_the_command_line_replaces_a_key() {
    let (_folder, mut command) = with_file("hub", "model = \"no such model\"\npresence = true\n");
    // A wrong value is wrong even if it is replaced.
    let said = refused(command.args(["--model", "epoll"]));
    assert!(said.contains("regatta.toml, line 1: invalid value"), "{said}");

    let (_folder, mut command) = with_file("hub", "model = \"threads\"\nlongest_message = 50\n");
    command.args(["--model", "epoll", "--cores", "1"]);
    let server = Server::start(command);
    let mut socket = member(&server);
    socket.send(tungstenite::Message::text("x".repeat(51))).unwrap();
    assert_eq!(closed(&mut socket), Some(CloseCode::Size));
}

#[test]
fn what_is_wrong_ends_with_status_2_and_is_named() {
    for (command, text, expected) in [
        (
            "shard",
            "\nnode = [\"a:1\"]",
            "regatta.toml, line 2: there is no key node; expected one of: model, ",
        ),
        ("hub", "max_members = 0", "regatta.toml, line 1: invalid value '0' for max_members: "),
        (
            "hub",
            "jwt_key = \"k\"\njwt_algorithm = \"HS256\"\ntoken_file = \"t\"",
            "regatta.toml: the argument jwt_key (line 1) cannot be used with token_file (line 3)",
        ),
        (
            "shard",
            "nodes = [\"a:1\"]\n\nnode_timeout = \"5x\"",
            "regatta.toml, line 3: invalid value '5x' for node_timeout: unknown time unit \"x\"",
        ),
        (
            "shard",
            "nodes = [\"a:1\"]\nmap = \"ketema\"",
            "regatta.toml, line 2: invalid value 'ketema' for map [possible values: slots, ",
        ),
        (
            "shard",
            "nodes = [\"a:1\"]\nhot_keys = true",
            "required arguments were not provided: --metrics <ADDR>",
        ),
        ("shard", "listen = \"127.0.0.1:0\"", "`shard` needs nodes"),
        ("shard", "nodes = [\"nowhere.invalid:1\"]", "nowhere.invalid:1"),
        ("hub", "model = \"fork\"", "the model `fork` does not run `hub`"),
        ("hub", "model = \"cluster\"\nmax_rooms = 5", "only without --max-rooms"),
        (
            "shard",
            "nodes = [\"127.0.0.1:1\"]\nmodel = \"threads\"\nmetrics = \"127.0.0.1:0\"",
            "only without --metrics",
        ),
        ("hub", "tls_cert = \"/no/cert\"\ntls_key = \"/no/key\"", "cannot read /no/cert"),
    ] {
        for more in [&[][..], &["--check"]] {
            let (_folder, mut started) = with_file(command, text);
            let ended = run(started.args(more));
            assert_eq!((ended.code(), &*ended.stdout), (2, ""), "{text}: {ended:?}");
            assert!(ended.stderr.contains(expected), "{text}: {ended:?}");
        }
    }
    let said = refused(regatta!("hub --config /no/such.toml"));
    assert!(said.contains("cannot read /no/such.toml: "), "{said}");
}

#[test]
fn a_check_prints_a_configuration_that_means_the_same() {
    let (_folder, mut command) =
        with_file("hub", "listen = \"127.0.0.1:8080\"\norigin = [\"https://a.example\"]\n");
    let checked = run(command.args(["--check", "--grace", "7s"]));
    assert_eq!(checked.code(), 0, "{checked:?}");
    let printed = checked.stdout;
    for line in
        ["listen = \"127.0.0.1:8080\"", "origin = [\"https://a.example\"]", "grace = \"7s\""]
    {
        assert!(printed.lines().any(|printed| printed.starts_with(line)), "{line}: {printed}");
    }
    let (_folder, mut again) = with_file("hub", &printed);
    let again = run(again.arg("--check")).stdout;
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" # ").next().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(values(&again), values(&printed));
}
