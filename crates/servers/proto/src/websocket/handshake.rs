//! The opening handshake (RFC 6455, 4): an HTTP/1.1 upgrade.

use super::DeflateSettings;
use crate::http1::{Date, Field, Fields, Method, Reply, Status, Terms, Version, server::Request};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha1::{Digest, Sha1};

/// A valid request to open a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    accept: Accept,
    /// The negotiated permessage-deflate settings, if the client offered it and the server supports
    /// it.
    pub deflate: Option<DeflateSettings>,
}

/// The value of Sec-WebSocket-Accept, in base64. It proves that the server read the key.
type Accept = [u8; 28];

/// Why a request does not open a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the reply.
    pub status: Status,
    /// A sentence for the client.
    pub why: &'static str,
}

impl Refusal {
    /// Appends the reply. A 426 contains the supported protocol and version (RFC 6455, 4.4).
    pub fn write(&self, terms: Terms, date: &Date, out: &mut Vec<u8>) {
        let fields = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
        let fields = fields.map(|(name, value)| Field::new(name, value).expect("a valid field"));
        let fields = if self.status == Status::UpgradeRequired { &fields[..] } else { &[] };
        Reply::text(self.status, self.why.as_bytes()).write_with(fields, terms, date, out);
    }
}

impl Opening {
    /// Validates a request (RFC 6455, 4.2.1). `deflate`: the server's requirements for
    /// permessage-deflate; `None`: it does not support it.
    pub fn read(request: &Request<'_>, deflate: Option<DeflateSettings>) -> Result<Self, Refusal> {
        let refuse = |status, why| Err(Refusal { status, why });
        let fields = request.fields;
        let text = |name: &str| fields.get(name).and_then(|value| std::str::from_utf8(value).ok());
        if request.method != Method::Get {
            return refuse(Status::MethodNotAllowed, "A WebSocket must be opened with GET.");
        }
        let names_it = lists(fields, "Upgrade", "websocket");
        if !request.wants_upgrade || !names_it || request.terms.version != Version::Http11 {
            return refuse(Status::UpgradeRequired, "This path requires an upgrade to WebSocket.");
        }
        if text("Sec-WebSocket-Version") != Some("13") {
            return refuse(Status::UpgradeRequired, "Only version 13 of WebSocket is supported.");
        }
        // The key must occur once: a nonce of 16 bytes, in base64.
        let mut keys = named(fields, "Sec-WebSocket-Key");
        let (Some(key), None) = (keys.next(), keys.next()) else {
            return refuse(Status::BadRequest, "Sec-WebSocket-Key must be sent exactly once.");
        };
        if STANDARD.decode(key).map(|nonce| nonce.len()) != Ok(16) {
            return refuse(Status::BadRequest, "Sec-WebSocket-Key is not 16 bytes in base64.");
        }
        let offers = named(fields, "Sec-WebSocket-Extensions");
        let offers = offers.filter_map(|value| std::str::from_utf8(value).ok());
        let deflate = deflate.and_then(|own| DeflateSettings::accept(offers, own));
        Ok(Opening { accept: accept(key), deflate })
    }

    /// Appends the 101 reply. Only frames follow on the connection.
    pub fn write(&self, terms: Terms, date: &Date, out: &mut Vec<u8>) {
        let accept = std::str::from_utf8(&self.accept).expect("base64 is ASCII");
        let extension = self.deflate.map(DeflateSettings::to_response);
        let fields = [
            Some(("Upgrade", "websocket")),
            Some(("Sec-WebSocket-Accept", accept)),
            extension.as_deref().map(|it| ("Sec-WebSocket-Extensions", it)),
        ];
        let fields: Vec<Field<'_>> = fields
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Field::new(name, value))
            .collect();
        Reply::switching().write_with(&fields, terms, date, out);
    }
}

/// The key of a client: a nonce in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Creates a key from 16 random bytes, which must be new for each connection.
    pub fn new(nonce: [u8; 16]) -> Self {
        Key(STANDARD.encode(nonce))
    }

    /// The required fields of the request, except Host, for [`crate::http1::client::Ask`].
    pub fn fields(&self) -> [(&str, &str); 4] {
        [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", &self.0),
        ]
    }

    /// Checks the 101 of a server (RFC 6455, 4.1). Returns the permessage-deflate settings that it
    /// agreed to. `offered`: whether permessage-deflate was offered. `subprotocol`: the subprotocol
    /// that was offered and must be chosen; `None`: none may be chosen.
    pub fn check(
        &self,
        fields: Fields<'_>,
        offered: bool,
        subprotocol: Option<&str>,
    ) -> Result<Option<DeflateSettings>, &'static str> {
        if !lists(fields, "Upgrade", "websocket") {
            return Err("the reply does not switch to websocket");
        }
        if !lists(fields, "Connection", "upgrade") {
            return Err("the reply does not contain Connection: Upgrade");
        }
        if fields.get("Sec-WebSocket-Accept") != Some(&accept(self.0.as_bytes())[..]) {
            return Err("Sec-WebSocket-Accept does not match the key");
        }
        match (fields.get("Sec-WebSocket-Protocol"), subprotocol.map(str::as_bytes)) {
            (Some(_), None) => return Err("the reply chooses a subprotocol, but none was offered"),
            (chosen, offered) if chosen != offered => {
                return Err("the reply does not choose the subprotocol that was offered");
            }
            _ => {}
        }
        let mut extensions = named(fields, "Sec-WebSocket-Extensions");
        match (extensions.next(), extensions.next()) {
            (None, _) => Ok(None),
            (Some(extension), None) if offered => std::str::from_utf8(extension)
                .ok()
                .and_then(DeflateSettings::agreed)
                .map(Some)
                .ok_or("the reply agrees to settings that were not offered"),
            _ => Err("the reply agrees to an extension that was not offered"),
        }
    }
}

/// RFC 6455, 4.2.2: the SHA-1 digest of the key and a fixed text.
fn accept(key: &[u8]) -> Accept {
    const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    let mut accept = [0; 28];
    let length = STANDARD.encode_slice(digest, &mut accept);
    debug_assert_eq!(length, Ok(28));
    accept
}

fn named<'a>(fields: Fields<'a>, name: &str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
}

/// Returns whether the fields with this name list this token, ignoring case.
fn lists(fields: Fields<'_>, name: &str, token: &str) -> bool {
    named(fields, name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{client, server};

    const REQUEST: &str = "GET /chat HTTP/1.1\r\nHost: server.example.com\r\nUpgrade: websocket\r\n\
        Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Origin: http://example.com\r\nSec-WebSocket-Version: 13\r\n\r\n";

    fn read(text: &str, deflate: bool) -> Result<(Opening, Terms), Refusal> {
        let mut decoder = server::Decoder::default();
        let Some((server::Event::Request(request), _)) = decoder.decode(text.as_bytes()) else {
            panic!("{text} is not a request")
        };
        let deflate = deflate.then(DeflateSettings::default);
        Opening::read(&request, deflate).map(|opening| (opening, request.terms))
    }

    /// Checks the reply as the client does.
    fn answered(
        key: &Key,
        reply: &[u8],
        offered: bool,
    ) -> Result<Option<DeflateSettings>, &'static str> {
        let (mut reply, mut decoder) = (reply, client::Decoder::default());
        let event = decoder.next(&mut reply, Method::Get).unwrap();
        let Some(client::Event::Switched(response)) = event else { panic!("no 101") };
        key.check(response.fields, offered, None)
    }

    fn reply(opening: Opening, terms: Terms) -> String {
        let mut out = Vec::new();
        opening.write(terms, &Date::at(0), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn accepts_the_example_of_the_rfc() {
        // RFC 6455, 1.3.
        let (opening, terms) = read(REQUEST, false).unwrap();
        let reply = reply(opening, terms);
        assert!(reply.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{reply}");
        assert!(reply.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        assert!(reply.contains("\r\nUpgrade: websocket\r\n"));
        assert!(reply.contains("\r\nConnection: Upgrade\r\n"));
        assert!(!reply.contains("Extensions"));
    }

    #[test]
    fn refuses_invalid_requests() {
        for (from, to, status) in [
            ("GET /chat", "HEAD /chat", 405),
            ("HTTP/1.1", "HTTP/1.0", 426),
            ("Upgrade: websocket", "Upgrade: h2c", 426),
            ("keep-alive, Upgrade", "keep-alive", 426),
            ("Version: 13", "Version: 8", 426),
            ("Sec-WebSocket-Version: 13\r\n", "", 426),
            ("Sec-WebSocket-Key: ", "X: ", 400),
            ("ZQ==", "ZQ=", 400),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25j", 400),
            ("Origin: ", "Sec-WebSocket-Key: ", 400),
        ] {
            let refusal = read(&REQUEST.replace(from, to), false).unwrap_err();
            assert_eq!(refusal.status.code(), status, "{to}");
            let terms = Terms { version: Version::Http11, head_only: false, keep_alive: true };
            let mut out = Vec::new();
            refusal.write(terms, &Date::at(0), &mut out);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out.contains("\r\nSec-WebSocket-Version: 13\r\n"), status == 426, "{out}");
        }
    }

    #[test]
    fn a_client_opens_what_a_server_accepts() {
        for (offer, speaks) in [(false, false), (true, false), (true, true), (false, true)] {
            let key = Key::new([7; 16]);
            let mut request = Vec::new();
            let mut fields = key.fields().to_vec();
            if offer {
                fields.push(("Sec-WebSocket-Extensions", DeflateSettings::OFFER));
            }
            let ask = client::Ask {
                method: Method::Get,
                target: "/ws",
                host: "a",
                fields: &fields,
                content: None,
            };
            ask.write(&mut request);
            let (opening, terms) = read(std::str::from_utf8(&request).unwrap(), speaks).unwrap();
            let reply = reply(opening, terms);
            let agreed = answered(&key, reply.as_bytes(), offer).unwrap();
            assert_eq!(agreed, opening.deflate);
            assert_eq!(agreed.is_some(), offer && speaks);
            // Replies that the client must refuse.
            for (from, to) in [
                ("Upgrade: websocket", "Upgrade: other"),
                ("Connection: Upgrade", "Connection: close"),
                ("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: x"),
                ("Upgrade: websocket", "Upgrade: websocket\r\nSec-WebSocket-Protocol: x"),
                ("Upgrade: websocket", "Upgrade: websocket\r\nSec-WebSocket-Extensions: x"),
            ] {
                assert!(answered(&key, reply.replace(from, to).as_bytes(), offer).is_err(), "{to}");
            }
        }
    }
    #[test]
    fn the_offered_subprotocol_must_be_chosen() {
        let key = Key::new([7; 16]);
        let (chosen, none) = ("Sec-WebSocket-Protocol: a.b\r\n", "");
        for (line, offered, is_right) in [
            (none, None, true),
            (chosen, Some("a.b"), true),
            (chosen, Some("a"), false),
            (chosen, None, false),
            (none, Some("a.b"), false),
        ] {
            let accept = accept(key.0.as_bytes());
            let reply = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {}\r\n{line}\r\n",
                str::from_utf8(&accept).unwrap()
            );
            let (mut reply, mut decoder) = (reply.as_bytes(), client::Decoder::default());
            let event = decoder.next(&mut reply, Method::Get).unwrap();
            let Some(client::Event::Switched(response)) = event else { panic!("no 101") };
            let checked = key.check(response.fields, false, offered);
            assert_eq!(checked.is_ok(), is_right, "{line:?} of {offered:?}: {checked:?}");
        }
    }
}
