//! The peers of the engine's connections: real TLS, or plaintext.

use regatta_engine::Conn;
use rustls::Connection;
use std::io::{Read, Write};

pub struct Peer {
    pub conn: Conn,
    /// It is a server: it answers each byte with the next one.
    pub is_server: bool,
    /// The connection is open.
    pub is_open: bool,
    tls: Option<Connection>,
    /// What it has sent and the engine has not received yet.
    pub sent: Vec<u8>,
    /// The plaintext that it has received.
    pub plain: Vec<u8>,
    /// What the driver has taken to write to it.
    pub taken: Vec<u8>,
    /// Its TLS has failed, or was made to send what its TLS did not write.
    pub is_broken: bool,
    /// It has ended its side; the engine learns of it after all that it has sent.
    pub has_ended: bool,
    /// The engine's side has ended, in TLS and in the connection.
    pub saw_end: bool,
    pub is_closed: bool,
    /// The connection is gone.
    pub is_gone: bool,
}

impl Peer {
    pub fn new(conn: Conn, is_server: bool, tls: Option<Connection>) -> Peer {
        let tls = tls.map(|mut tls| {
            tls.set_buffer_limit(None);
            tls
        });
        Peer {
            conn,
            is_server,
            is_open: !is_server,
            tls,
            sent: Vec::new(),
            plain: Vec::new(),
            taken: Vec::new(),
            is_broken: false,
            has_ended: false,
            saw_end: false,
            is_closed: false,
            is_gone: false,
        }
    }

    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    pub fn say(&mut self, plain: &[u8]) {
        match &mut self.tls {
            Some(tls) => tls.writer().write_all(plain).unwrap(),
            None => self.sent.extend_from_slice(plain),
        }
        self.flush();
    }

    pub fn close_notify(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush();
    }

    pub fn flush(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        while !self.is_broken && tls.wants_write() {
            tls.write_tls(&mut self.sent).unwrap();
        }
    }

    /// Receives what was written to it. A server answers.
    pub fn receive(&mut self, mut bytes: &[u8]) {
        let mut plain = Vec::new();
        match &mut self.tls {
            None => plain.extend_from_slice(bytes),
            Some(tls) => {
                while !bytes.is_empty() && !self.is_broken && !self.saw_end {
                    tls.read_tls(&mut bytes).unwrap();
                    let Ok(state) = tls.process_new_packets() else {
                        self.is_broken = true;
                        // Its alert.
                        while tls.wants_write() {
                            tls.write_tls(&mut self.sent).unwrap();
                        }
                        break;
                    };
                    let start = plain.len();
                    plain.resize(start + state.plaintext_bytes_to_read(), 0);
                    tls.reader().read_exact(&mut plain[start..]).unwrap();
                    self.saw_end |= state.peer_has_closed();
                }
                assert!(bytes.is_empty() || self.is_broken, "output follows the close_notify");
            }
        }
        if self.is_server {
            let answer: Vec<u8> = plain.iter().map(|byte| byte.wrapping_add(1)).collect();
            self.say(&answer);
        } else {
            self.flush();
        }
        self.plain.extend(plain);
    }
}
