//! The Unix socket of the proxy. None of this needs a node.

use crate::support::{Server, on_models, regatta, until};
use regatta_testkit::child::run_within;
use std::{
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    process::Command,
    time::Duration,
};
use tempfile::TempDir;

fn command(model: &str, path: &Path) -> Command {
    let mut command = regatta!("shard --model {model} --cores 1 --nodes 127.0.0.1:1 --unix");
    command.arg(path);
    command
}

fn ping(path: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    stream
}

on_models!(it_serves_clients_beside_the_port: percore, uring);

fn it_serves_clients_beside_the_port(model: &str) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("socket");
    let mut command = command(model, &path);
    command.args(["--unix-mode", "660", "--max-clients-per-address", "1"]);
    let mut server = Server::start(command);
    let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660, "{model}");
    // They have no address, so they are not counted for one.
    let _clients: Vec<UnixStream> = (0..3).map(|_| ping(&path)).collect();
    let mut stream = server.connect();
    stream.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n", "{model}");
    server.signal("-TERM");
    drop((_clients, stream));
    assert!(server.ended().success(), "{model}");
    assert!(!path.exists(), "{model}: its file is removed");
}

#[test]
fn a_socket_in_use_is_not_replaced_and_one_that_was_left_is() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("socket");
    let mut first = Server::start(command("percore", &path));
    let second = command("percore", &path);
    let ended = run_within(Duration::from_secs(20), second);
    let error = ended.stderr;
    let expected = format!(
        "cannot listen on --unix {}: another process (pid {}) listens there",
        path.display(),
        first.child.id()
    );
    assert!(!ended.status.success() && error.contains(&expected), "{error}");
    ping(&path);
    first.signal("-KILL");
    until("it is gone", || first.child.try_wait().unwrap().is_some());
    assert!(path.exists());
    let _third = Server::start(command("percore", &path));
    ping(&path);
}

#[test]
fn models_with_one_thread_or_a_program_for_each_client_refuse_it() {
    for model in ["epoll", "poll", "select", "threads", "fork"] {
        let command = command(model, Path::new("/nowhere/socket"));
        let error = run_within(Duration::from_secs(20), command).stderr;
        let expected = format!("the model `{model}` runs `shard` only without --unix: ");
        assert!(error.contains(&expected), "{error}");
    }
}
