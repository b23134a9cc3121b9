//! A hub for the tests of races: `hub_liar PORT HOW`, where HOW is one of:
//!
//! - `honest`: delivers each broadcast to all members.
//! - `dismisses N`: does so, and with every Nth broadcast closes the connections of all members but its sender. The
//!   result follows when these have closed their ends, so nothing is owed then. A member that comes back waits for its
//!   first reply, and until then there are fewer deliveries to make.

use regatta_testkit::deadline::until;
use serde_json::{Value, json};
use std::{
    env,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use tungstenite::{Message, WebSocket, accept, protocol::Role};

/// How long a member that comes back waits for its first reply.
const JOINS_AFTER: Duration = Duration::from_millis(50);

/// A member with its number.
type Member = (usize, WebSocket<TcpStream>);

struct Hub {
    /// One in so many broadcasts closes connections; 0: none.
    every: usize,
    members: Mutex<Vec<Member>>,
    broadcasts: AtomicUsize,
    /// Number of connections that clients have closed.
    ended: AtomicUsize,
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (port, every) = match words[..] {
        [port, "honest"] => (port, 0),
        [port, "dismisses", n] => (port, n.parse().expect("a number")),
        _ => panic!("usage: hub_liar PORT HOW; see its source"),
    };
    let [broadcasts, ended] = Default::default();
    let hub = &*Box::leak(Box::new(Hub { every, members: Mutex::default(), broadcasts, ended }));
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    for (number, stream) in listener.incoming().enumerate() {
        let stream = stream.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        thread::spawn(move || {
            hub.serve(number, stream);
            hub.ended.fetch_add(1, SeqCst);
            hub.members().retain(|(member, _)| *member != number);
        });
    }
}

impl Hub {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().expect("no thread panics with the lock")
    }

    /// Answers a member until its connection ends.
    fn serve(&self, number: usize, stream: TcpStream) {
        let writer = stream.try_clone().expect("a descriptor");
        let Ok(mut socket) = accept(stream) else { return };
        let mut joins = Some(WebSocket::from_raw_socket(writer, Role::Server, None));
        while let Ok(Message::Text(text)) = socket.read() {
            let message: Value = serde_json::from_str(&text).expect("a message");
            let payload = &message["payload"];
            match (&message["type"], joins.take()) {
                (kind, Some(mut writer)) if kind == "echo" => {
                    if self.every > 0 && self.broadcasts.load(SeqCst) > 0 {
                        thread::sleep(JOINS_AFTER);
                    }
                    let mut members = self.members();
                    let reply = json!({"type": "echo", "payload": payload});
                    let _ = writer.send(Message::text(reply.to_string()));
                    members.push((number, writer));
                }
                _ => self.broadcast(number, payload),
            }
        }
    }

    fn broadcast(&self, sender: usize, payload: &Value) {
        let mut members = self.members();
        let copy = json!({"type": "broadcast", "payload": payload}).to_string();
        for (_, member) in members.iter_mut() {
            // It may have left.
            let _ = member.send(Message::text(copy.as_str()));
        }
        let nth = 1 + self.broadcasts.fetch_add(1, SeqCst);
        if self.every > 0 && nth.is_multiple_of(self.every) {
            let before = self.ended.load(SeqCst);
            let others: Vec<Member> =
                members.extract_if(.., |(member, _)| *member != sender).collect();
            for (_, member) in &others {
                let _ = member.get_ref().shutdown(Shutdown::Write);
            }
            until("the clients close", || self.ended.load(SeqCst) >= before + others.len());
        }
        let listeners = members.len();
        let result =
            json!({"type": "broadcastResult", "payload": payload, "listenerCount": listeners});
        for (_, member) in members.iter_mut().filter(|(member, _)| *member == sender) {
            let _ = member.send(Message::text(result.to_string()));
        }
    }
}
