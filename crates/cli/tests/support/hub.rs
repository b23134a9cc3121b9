//! Members of a hub: a client from another crate.

use crate::support::Server;
use serde_json::{Value, json};
use std::{
    io::{self, Read, Write},
    net::TcpStream,
};
use tungstenite::{Error, Message, WebSocket, client::client, protocol::frame::coding::CloseCode};

/// Models whose connections can communicate with each other.
pub fn models() -> Vec<&'static str> {
    let mut models = super::models();
    models.retain(|model| !ALONE.contains(model));
    models
}

/// Models whose processes share nothing.
pub const ALONE: [&str; 2] = ["fork", "prefork"];

/// Declares a test for each model of [`models`]: see [`on_models!`].
macro_rules! on_hub_models {
    ($test:ident) => {
        $crate::support::on_models! {
            $test: threads, select, poll, epoll, cluster, percore, green, on_async, uring
        }
    };
}
pub(crate) use on_hub_models;

/// A stream that retries reads after a signal, e.g. when a child process of another test exits.
pub struct Patient(pub TcpStream);

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

pub type Socket = WebSocket<Patient>;

pub fn member(server: &Server) -> Socket {
    member_of(server, "/ws")
}

pub fn member_of(server: &Server, path: &str) -> Socket {
    let url = format!("ws://{}{path}", server.addr);
    client(url, Patient(server.connect())).expect("the hub opens a WebSocket").0
}

pub fn send(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

pub fn hear(socket: &mut Socket) -> Value {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            // On a busy machine a member may be silent for long. Reading sends the pong.
            Message::Ping(_) => {}
            other => panic!("{other:?} instead of a text"),
        }
    }
}

/// Connects `n` members. On every model, a member has joined when the others receive its broadcast.
pub fn members(server: &Server, n: usize) -> Vec<Socket> {
    let mut members = Vec::new();
    for all in 1..=n {
        members.push(member(server));
        let (last, before) = members.split_last_mut().unwrap();
        send(last, &json!({"type": "broadcast", "payload": all}));
        let copy = json!({"type": "broadcast", "payload": all});
        assert_eq!(hear(last), copy);
        let result = hear(last);
        assert_eq!((&result["type"], &result["payload"]), (&json!("broadcastResult"), &json!(all)));
        before.iter_mut().for_each(|socket| assert_eq!(hear(socket), copy));
    }
    members
}

/// Returns the hub's close code; `None` if it closes without one. Ignores all messages before that.
pub fn closed(socket: &mut Socket) -> Option<CloseCode> {
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return None,
            Err(error) => panic!("{error}"),
        }
    }
}
