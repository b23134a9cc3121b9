//! The opening handshake of a WebSocket: an HTTP upgrade.

use crate::text::printable;
use regatta_proto::{
    http1::{Method, client},
    websocket::handshake::Key,
};
use regatta_record::Exchange;

/// An upgrade in progress.
#[derive(Debug)]
pub(super) struct Upgrade {
    key: Key,
    decoder: client::Decoder,
}

/// The parameters of the upgrade request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub host: &'a str,
    pub path: &'a str,
    /// A subprotocol that is offered and that the server must choose.
    pub subprotocol: Option<&'a str>,
}

impl Upgrade {
    /// Creates an upgrade with a key of 16 random bytes.
    pub fn new(nonce: [u8; 16]) -> Upgrade {
        Upgrade { key: Key::new(nonce), decoder: client::Decoder::default() }
    }

    /// Appends the request.
    pub fn ask(&self, asked: Asked<'_>, out: &mut Vec<u8>) {
        let mut fields = self.key.fields().to_vec();
        fields.extend(asked.subprotocol.map(|name| ("Sec-WebSocket-Protocol", name)));
        let (target, host) = (asked.path, asked.host);
        client::Ask { method: Method::Get, target, host, fields: &fields, content: None }
            .write(out);
    }

    /// Reads the reply from the front of `data`, which holds all bytes received so far. Returns the
    /// number of bytes after the reply, or `None` if it is not complete.
    pub fn take(
        &mut self,
        asked: Asked<'_>,
        data: &mut Vec<u8>,
    ) -> Result<Option<usize>, Box<Exchange>> {
        let mut rest = &data[..];
        let why = match self.decoder.next(&mut rest, Method::Get) {
            Ok(None) => {
                // Drops the interim responses that were skipped.
                let from = data.len() - rest.len();
                data.drain(..from);
                return Ok(None);
            }
            Ok(Some(client::Event::Switched(response))) => {
                match self.key.check(response.fields, false, asked.subprotocol) {
                    Ok(_) => return Ok(Some(rest.len())),
                    Err(why) => Some(why),
                }
            }
            // Its status is explanation enough.
            Ok(Some(_)) => None,
            Err(_) if is_tls(data) => Some("the server uses TLS; write the URL as wss://"),
            Err(malformed) => Some(malformed.0),
        };
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        let mut sent = Vec::new();
        self.ask(asked, &mut sent);
        Err(Box::new(Exchange {
            sent: printable(&sent),
            expected: "101 Switching Protocols, to WebSocket".into(),
            received: printable(data) + &why,
            reply_index: 0,
        }))
    }
}

/// Whether a server answers with TLS: with an alert or a handshake of version 3 (RFC 8446, 5.1).
fn is_tls(data: &[u8]) -> bool {
    matches!(data, [0x15 | 0x16, 3, ..])
}
