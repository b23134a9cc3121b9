//! Clients of Centrifugo's protocol at a running hub: over sockets, over TLS, at a stop, and its own client libraries.

mod broker;

use crate::support::{
    Server,
    hub::{Patient, Socket, closed, hear, made, member_of, models, send},
    on_models, refused, regatta,
};
use regatta_testkit::skip;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use tungstenite::{Message, client::client, protocol::frame::coding::CloseCode};

const PATH: &str = "/connection/websocket";
const SECRET: &str = "a secret of at least 32 characters";

/// Declares a test for each model on which a connection may be in several rooms.
macro_rules! on_engines {
    ($test:ident) => {
        on_models! { $test: select, poll, epoll, percore, uring }
    };
}

/// A client that is connected.
fn connected(server: &Server) -> Socket {
    let mut socket = member_of(server, PATH);
    let reply = asks(&mut socket, 1, &json!({"connect": {}}));
    assert!(reply["connect"]["client"].is_string(), "{reply}");
    socket
}

/// Sends a command, and returns the reply to it. What comes before is lost.
fn asks(socket: &mut Socket, id: u32, command: &Value) -> Value {
    let mut command = command.clone();
    command["id"] = json!(id);
    send(socket, &command);
    loop {
        let heard = hear(socket);
        if heard["id"] == id {
            return heard;
        }
    }
}

fn subscribes(socket: &mut Socket, id: u32, channel: &str) {
    let reply = asks(socket, id, &json!({"subscribe": {"channel": channel}}));
    assert!(reply["subscribe"].is_object(), "{reply}");
}

on_engines!(clients_and_members_on_all_cores_are_in_the_same_rooms);

fn clients_and_members_on_all_cores_are_in_the_same_rooms(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2", "--centrifuge", "--history", "100"]);
    let mut clients: Vec<Socket> = (0..4).map(|_| connected(&server)).collect();
    let mut member = member_of(&server, "/ws/red");
    assert_eq!(hear(&mut member)["type"], "position", "{model}");
    for client in &mut clients {
        subscribes(client, 2, "red");
        subscribes(client, 3, "blue");
    }
    for n in 1..=50 {
        for (who, client) in clients.iter_mut().enumerate() {
            let publish = json!({"channel": (["red", "blue"][who % 2]), "data": [who, n]});
            send(client, &json!({"id": n + 10, "publish": publish}));
        }
    }
    let mut orders: Vec<[Vec<Value>; 2]> = Vec::new();
    for client in &mut clients {
        let (mut order, mut replies) = ([vec![], vec![]], 0);
        while replies < 50 || order.iter().any(|one| one.len() < 100) {
            let heard = hear(client);
            if heard["publish"].is_object() {
                replies += 1;
                continue;
            }
            let room = usize::from(heard["push"]["channel"] == "blue");
            order[room].push(heard["push"]["pub"]["data"].clone());
            assert_eq!(heard["push"]["pub"]["offset"], order[room].len(), "{model}: {heard}");
        }
        orders.push(order);
    }
    let of_member: Vec<Value> = (0..100).map(|_| hear(&mut member)["payload"].clone()).collect();
    assert!(orders.iter().all(|one| *one == orders[0]), "{model}: one order for each room");
    assert_eq!(of_member, orders[0][0], "{model}");
}

on_engines!(a_client_that_comes_back_gets_what_it_has_missed);

fn a_client_that_comes_back_gets_what_it_has_missed(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2", "--centrifuge", "--history", "10"]);
    let (mut ann, mut bob) = (connected(&server), connected(&server));
    let first = asks(&mut ann, 2, &json!({"subscribe": {"channel": "red"}}));
    drop(ann);
    for n in 1..4 {
        asks(&mut bob, n + 1, &json!({"publish": {"channel": "red", "data": n}}));
    }
    let mut ann = connected(&server);
    let position = json!({"channel": "red", "recover": true, "offset": 0,
        "epoch": first["subscribe"]["epoch"]});
    let reply = asks(&mut ann, 2, &json!({"subscribe": position}));
    let got = reply["subscribe"]["publications"].as_array().expect("publications");
    let got: Vec<_> = got.iter().map(|one| one["data"].as_u64().unwrap()).collect();
    assert_eq!((got, &reply["subscribe"]["recovered"]), (vec![1, 2, 3], &json!(true)), "{model}");
}

on_engines!(at_a_stop_clients_are_closed_with_3001);

fn at_a_stop_clients_are_closed_with_3001(model: &str) {
    for drain in ["0s", "300ms"] {
        let mut server =
            Server::start(regatta!("hub --model {model} --centrifuge --drain {drain}"));
        let mut client = connected(&server);
        subscribes(&mut client, 2, "red");
        server.signal("-TERM");
        assert_eq!(closed(&mut client), Some(CloseCode::from(3001)), "{model} {drain}");
        drop(client);
        assert!(server.ended().success(), "{model}");
    }
}

#[test]
fn over_tls_a_client_is_in_several_rooms() {
    let (_folder, tls, trusts) = made();
    let options = ["--centrifuge", &tls[0], &tls[1], &tls[2], &tls[3]];
    let server = Server::of("hub", "percore", &options);
    let name = "127.0.0.1".try_into().unwrap();
    let connection = ClientConnection::new(trusts, name).unwrap();
    let stream = StreamOwned::new(connection, Patient(server.connect()));
    let (mut client, _) = client(format!("wss://{}{PATH}", server.addr), stream).unwrap();
    let mut tell = |value: Value| client.send(Message::text(value.to_string())).unwrap();
    tell(json!({"id": 1, "connect": {}}));
    for (id, channel) in [(2, "red"), (3, "blue")] {
        tell(json!({"id": id, "subscribe": {"channel": channel}}));
    }
    tell(json!({"id": 4, "publish": {"channel": "blue", "data": 1}}));
    let mut all = Vec::new();
    while all.len() < 5 {
        if let Message::Text(text) = client.read().unwrap() {
            all.push(serde_json::from_str::<Value>(&text).unwrap());
        }
    }
    let push = json!({"push": {"channel": "blue", "pub": {"data": 1}}});
    assert_eq!(all[3..], [push, json!({"id": 4, "publish": {}})]);
}

#[test]
fn models_with_one_room_per_connection_refuse_the_option() {
    let is_engine = |model: &&str| ["select", "poll", "epoll", "percore", "uring"].contains(model);
    for model in models().into_iter().filter(|model| !is_engine(model)) {
        let errors = refused(regatta!("hub --check --centrifuge --model {model}"));
        assert!(errors.contains("--centrifuge"), "{model}: {errors}");
        assert!(errors.contains("percore or uring"), "{model}: {errors}");
    }
}

/// A folder below `.tools`, in which a library is if this path below it is there.
fn library(folder: &str, path: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools").join(folder);
    folder.join(path).exists().then_some(folder)
}

/// Runs a program, a script and its arguments, with a hub that has tokens, histories and presence.
fn with_hub(program: &str, script: &str, prepare: impl FnOnce(&mut Command)) {
    let folder = TempDir::new().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, SECRET).unwrap();
    let key = ["--jwt-key", secret.to_str().unwrap(), "--jwt-algorithm", "HS256"];
    let options = ["--cores", "2", "--centrifuge", "--history", "100", "--presence"];
    let server = Server::of("hub", "percore", &[&key[..], &options[..]].concat());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hub/centrifuge").join(script);
    let mut command = Command::new(program);
    command.arg(script).args([format!("ws://{}{PATH}", server.addr), SECRET.to_owned()]);
    prepare(&mut command);
    let ran = command.output().expect("it runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn the_client_library_for_python_works() {
    match library("centrifuge-python", "centrifuge") {
        Some(library) => with_hub("python3", "client.py", |command| {
            command.env("PYTHONPATH", library);
        }),
        None => skip("centrifuge-python is not installed (scripts/setup)"),
    }
}

#[test]
#[cfg_attr(not(has_node), ignore = "node is not installed")]
fn the_client_library_for_javascript_works() {
    match library("centrifuge-js", "node_modules/centrifuge") {
        Some(library) => with_hub("node", "client.mjs", |command| {
            command.current_dir(library);
        }),
        None => skip("centrifuge-js is not installed (scripts/setup)"),
    }
}
