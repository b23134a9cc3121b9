//! A client of NATS that does what it likes.

use super::place::Place;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use nkeys::KeyPair;
use regatta_testkit::deadline::DEADLINE;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

/// A connection to the broker.
pub struct Raw {
    from: BufReader<TcpStream>,
    sid: u32,
}

impl Raw {
    /// Logs in with the key of an agent or the leader
    /// (https://docs.nats.io/reference/reference-protocols/nats-protocol).
    pub fn login(place: &Place, name: &str) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", place.port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut raw = Raw { from: BufReader::new(stream), sid: 0 };
        let info = raw.line();
        let info: serde_json::Value =
            serde_json::from_str(info.strip_prefix("INFO ").unwrap()).unwrap();
        let seed = fs::read_to_string(place.path(&format!("{name}.nk"))).unwrap();
        let key = KeyPair::from_seed(seed.trim()).unwrap();
        let signature = key.sign(info["nonce"].as_str().unwrap().as_bytes()).unwrap();
        let login = serde_json::json!({
            "verbose": false,
            "pedantic": false,
            "lang": "test",
            "version": "0",
            "protocol": 1,
            "nkey": key.public_key(),
            "sig": BASE64_URL_SAFE_NO_PAD.encode(signature),
        });
        raw.send(&format!("CONNECT {login}\r\n")).unwrap();
        raw
    }

    /// Subscribes, or returns the error.
    pub fn subscribe(&mut self, subject: &str) -> Result<(), String> {
        self.sid += 1;
        self.send(&format!("SUB {subject} {}\r\n", self.sid))
    }

    /// Publishes, or returns the error.
    pub fn publish(&mut self, subject: &str) -> Result<(), String> {
        self.send(&format!("PUB {subject} 1\r\nx\r\n"))
    }

    /// Sends something and then a ping, which is answered after an error.
    fn send(&mut self, what: &str) -> Result<(), String> {
        self.from.get_mut().write_all(format!("{what}PING\r\n").as_bytes()).unwrap();
        let mut error = None;
        loop {
            match self.line() {
                pong if pong == "PONG" => return error.map_or(Ok(()), Err),
                line if line.starts_with("-ERR") => error = Some(line),
                // The broker's ping, or a message.
                _ => {}
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "the broker closed the connection");
        line.trim_end().to_owned()
    }
}
