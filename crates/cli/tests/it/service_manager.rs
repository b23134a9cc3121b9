//! `regatta hub` and `regatta shard` below a service manager such as systemd: a socket that it passes, and its
//! notification. This test is the service manager.

use crate::support::{
    DEADLINE, Server,
    hub::{Patient, Socket, closed, hear, send},
    on_models, regatta,
};
use regatta_testkit::child::Ended;
use serde_json::json;
use std::{
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tungstenite::{client::client, protocol::frame::coding::CloseCode};

/// A command that runs `regatta` with these arguments, and a socket as descriptor 3.
fn with_socket(socket: &TcpListener, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = "export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\" 3<&0 </dev/null";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_regatta")]).args(arguments);
    let socket: OwnedFd = socket.try_clone().unwrap().into();
    command.stdin(Stdio::from(socket));
    command
}

/// Opens a connection that may have to wait until a server accepts it.
fn connect(socket: &TcpListener) -> TcpStream {
    let stream = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

fn member(stream: TcpStream) -> Socket {
    client("ws://hub/ws", Patient(stream)).expect("the hub opens a WebSocket").0
}

on_models!(connections_wait_while_a_hub_restarts: select, poll, epoll, percore, cluster, on_async, uring);

fn connections_wait_while_a_hub_restarts(model: &str) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let arguments = ["hub", "--model", model, "--cores", "2", "--listen", "127.0.0.1:1"];
    let mut waiting: Vec<TcpStream> = Vec::new();
    for _ in 0..3 {
        let mut hub = Server::start(with_socket(&socket, &arguments));
        assert_eq!(hub.addr, socket.local_addr().unwrap(), "{model}");
        waiting.push(connect(&socket));
        for stream in waiting.drain(..) {
            let mut member = member(stream);
            let echo = json!({"type": "echo", "payload": 1});
            send(&mut member, &echo);
            assert_eq!(hear(&mut member), echo, "{model}");
            drop(member);
        }
        let mut member = member(connect(&socket));
        hub.signal("-TERM");
        assert_eq!(closed(&mut member), Some(CloseCode::Away), "{model}");
        assert!(hub.ended().success(), "{model}");
        waiting.extend((0..4).map(|_| connect(&socket)));
    }
}

#[test]
fn the_service_manager_is_notified_when_the_service_listens() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    for arguments in [&["hub"][..], &["shard", "--nodes", "127.0.0.1:1"]] {
        let server = Server::start(regatta!("").args(arguments).env("NOTIFY_SOCKET", &path));
        let mut received = [0; 200];
        let length = manager.recv(&mut received).unwrap();
        let text = String::from_utf8_lossy(&received[..length]).into_owned();
        assert_eq!(text, format!("READY=1\nSTATUS=listening on {}\n", server.addr));
    }
}

#[test]
fn a_socket_that_cannot_be_used_is_refused() {
    // Its stdin is the socket.
    let refused = |mut command: Command, expected: &str| {
        let error = Ended::from(command.output().unwrap()).with_status(2).stderr;
        assert!(error.contains(expected), "{error}");
    };
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    for model in ["threads", "green"] {
        let command = with_socket(&socket, &["hub", "--model", model]);
        refused(command, &format!("the model `{model}` cannot use a socket"));
    }
    for (fds, redirections, expected) in [
        (2, "3<&0 4<&0", "passed 2 sockets; expected one"),
        (1, "3</dev/null", "expected a TCP socket from the service manager"),
    ] {
        let mut command = Command::new("sh");
        let script = format!("export LISTEN_FDS={fds} LISTEN_PID=$$; exec \"$@\" {redirections}");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_regatta"), "hub"]);
        command.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
        refused(command, expected);
    }
}
