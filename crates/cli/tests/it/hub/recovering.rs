//! A client that knows its position in the history of a room.

use crate::support::{
    Server,
    hub::{Socket, hear, member_of, send},
};
use serde_json::{Value, json};

/// A client and its position.
pub struct Client {
    pub socket: Socket,
    pub epoch: String,
    pub offset: u64,
    /// The path of its room.
    path: String,
}

impl Client {
    /// Joins the room `red`. Returns the client with the hub's first message.
    pub fn joins(server: &Server, position: Option<(&str, u64)>) -> (Client, Value) {
        Client::joins_at(server, "/ws/red", position)
    }

    pub fn joins_at(server: &Server, path: &str, position: Option<(&str, u64)>) -> (Client, Value) {
        let query = position.map(|(epoch, offset)| format!("?epoch={epoch}&offset={offset}"));
        let mut socket = member_of(server, &format!("{path}{}", query.unwrap_or_default()));
        let first = hear(&mut socket);
        let mut client = Client { socket, epoch: String::new(), offset: 0, path: path.into() };
        client.is_at(&first);
        (client, first)
    }

    fn is_at(&mut self, heard: &Value) {
        self.epoch = heard["epoch"].as_str().expect("an epoch").to_owned();
        self.offset = heard["offset"].as_u64().expect("an offset");
    }

    /// Joins with its position, which must be possible without a gap.
    pub fn comes_back(&mut self, server: &Server) {
        let position = Some((&*self.epoch, self.offset));
        let (client, first) = Client::joins_at(server, &self.path, position);
        let position = json!({"type": "position", "epoch": self.epoch, "offset": self.offset,
            "recovered": true});
        assert_eq!(first, position);
        *self = client;
    }

    /// The next message, which must follow the last one. Results are skipped.
    pub fn takes(&mut self) -> Value {
        loop {
            let heard = hear(&mut self.socket);
            match heard["type"].as_str().unwrap() {
                "broadcast" => {
                    assert_eq!(heard["offset"], self.offset + 1, "{heard}");
                    self.offset += 1;
                    return heard["payload"].clone();
                }
                "broadcastResult" => {}
                _ => panic!("after {}: {heard}", self.offset),
            }
        }
    }

    /// The next thing is a gap.
    pub fn misses(&mut self) {
        let heard = loop {
            let heard = hear(&mut self.socket);
            if heard["type"] != "broadcastResult" {
                break heard;
            }
        };
        assert_eq!(
            (&heard["type"], &heard["recovered"]),
            (&json!("gap"), &json!(false)),
            "{heard}"
        );
        self.is_at(&heard);
    }

    pub fn says(&mut self, payload: &Value) {
        send(&mut self.socket, &json!({"type": "broadcast", "payload": payload}));
    }

    /// Says it until it is published, and takes it.
    pub fn insists(&mut self, payload: &Value) {
        self.says(payload);
        loop {
            let heard = hear(&mut self.socket);
            match heard["type"].as_str().unwrap() {
                "broadcast" => {
                    assert_eq!(
                        (&heard["payload"], &heard["offset"]),
                        (payload, &json!(self.offset + 1))
                    );
                    self.offset += 1;
                    return;
                }
                "error" => self.says(payload),
                "broadcastResult" => {}
                _ => panic!("{heard}"),
            }
        }
    }

    /// The same, if there is a gap before it.
    pub fn insists_after_a_gap(&mut self, payload: &Value) {
        let heard = loop {
            let heard = hear(&mut self.socket);
            if heard["type"] == "gap" {
                break heard;
            }
        };
        self.is_at(&heard);
        self.insists(payload);
    }

    pub fn error(&mut self) -> String {
        loop {
            let heard = hear(&mut self.socket);
            if heard["type"] != "broadcastResult" {
                return heard["error"].as_str().unwrap_or_else(|| panic!("{heard}")).to_owned();
            }
        }
    }
}
