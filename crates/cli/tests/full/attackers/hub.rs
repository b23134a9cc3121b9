//! Attackers of the hub, with and without TLS.

use super::{
    attack::{Held, Kind, dial, kind, read_most, reset},
    beside::Attacked,
};
use crate::support::{
    hub::{hub, made, metric},
    on_models,
};
use regatta_proto::websocket::{CloseCode, Frame};
use regatta_testkit::machine;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
};

/// `--backlog` and `--longest-message`, in bytes.
const BACKLOG: u64 = 256 << 10;
const LONGEST: u64 = 64 << 10;
/// Maximum number of members; the attackers hold some more connections.
const MEMBERS: u64 = 500;
const CONNECTIONS: u64 = 1_000;
/// Memory of the hub without its members' buffers, in MiB.
const STANDING: u64 = 64;

on_models!(attackers_of_many_kinds_do_not_harm_others: percore, uring, epoll);

fn attackers_of_many_kinds_do_not_harm_others(model: &str) {
    attacked(model, false);
}

on_models!(attackers_of_many_kinds_do_not_harm_others_over_tls: percore, uring, epoll);

fn attackers_of_many_kinds_do_not_harm_others_over_tls(model: &str) {
    attacked(model, true);
}

fn attacked(model: &str, is_sealed: bool) {
    let _turn = machine::alone();
    let (folder, sealed, trusts) = made();
    let number = |number: u64| number.to_string();
    let limits = [
        ["--backlog".to_owned(), number(BACKLOG)],
        ["--longest-message".to_owned(), number(LONGEST)],
        ["--max-members".to_owned(), number(MEMBERS)],
        ["--max-connections".to_owned(), number(CONNECTIONS)],
    ];
    let mut options: Vec<&str> = limits.as_flattened().iter().map(String::as_str).collect();
    if is_sealed {
        options.extend(sealed.iter().map(String::as_str));
    }
    let (server, page) = hub(model, &options);
    let (twin, _) = hub(model, &options);
    let trusts = is_sealed.then_some(trusts);
    let scheme = if is_sealed { "wss" } else { "ws" };
    let cert = folder.path().join("cert").display().to_string();
    let url = format!("{scheme}://{}/ws/honest", server.addr);
    let honest = [&url, "-c", "20", "--cacert", &cert];
    let honest = &honest[..if is_sealed { 5 } else { 3 }];
    Attacked {
        name: format!("hub{} on {model}", if is_sealed { " over TLS" } else { "" }),
        honest: honest.iter().map(|word| (*word).to_owned()).collect(),
        rate: 200.0,
        // For a member, its backlog, its longest message, and the output before the backlog; for any
        // connection, a request or the records of TLS.
        budget: MEMBERS * (BACKLOG + LONGEST + (64 << 10))
            + CONNECTIONS * (64 << 10)
            + (STANDING << 20),
        kinds: &|addr| kinds(&At { addr, trusts: trusts.clone() }),
        left: &|| vec![("members", metric(page, "regatta_hub_members"))],
        server,
        twin,
    }
    .withstands();
}

/// Where the hub is, and how it is reached.
#[derive(Clone)]
struct At {
    addr: SocketAddr,
    /// With TLS.
    trusts: Option<Arc<ClientConfig>>,
}

/// A connection of an attacker.
enum Wire {
    Plain(TcpStream),
    Sealed(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl At {
    fn wire(&self) -> io::Result<Wire> {
        let stream = dial(self.addr)?;
        Ok(match self.session() {
            None => Wire::Plain(stream),
            Some(session) => Wire::Sealed(Box::new(StreamOwned::new(session, stream))),
        })
    }

    fn session(&self) -> Option<ClientConnection> {
        let name = ServerName::try_from("localhost").expect("a name");
        let trusts = self.trusts.as_ref()?;
        Some(ClientConnection::new(Arc::clone(trusts), name).expect("a configuration"))
    }

    fn say(&self, bytes: &[u8]) -> io::Result<Wire> {
        let mut wire = self.wire()?;
        wire.write_all(bytes)?;
        Ok(wire)
    }

    /// A member of this room.
    fn member(&self, room: &str) -> io::Result<Wire> {
        let mut wire = self.say(upgrade(room).as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            wire.read_exact(&mut byte)?;
            head.extend(byte);
        }
        match head.starts_with(b"HTTP/1.1 101 ") {
            true => Ok(wire),
            false => Err(io::Error::other("the hub is full")),
        }
    }

    /// A member of this room that sends something.
    fn speaker(&self, room: &str, bytes: &[u8]) -> io::Result<Wire> {
        let mut wire = self.member(room)?;
        // The hub may have stopped to read.
        let _ = wire.write_all(bytes);
        Ok(wire)
    }

    /// The first bytes of a new connection, before the hub has answered any.
    fn opening(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.session() {
            None => bytes.extend(upgrade("opening").as_bytes()),
            Some(mut session) => drop(session.write_tls(&mut bytes)),
        }
        bytes
    }
}

impl Wire {
    fn tcp(&self) -> &TcpStream {
        match self {
            Wire::Plain(stream) => stream,
            Wire::Sealed(sealed) => &sealed.sock,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(into),
            Wire::Sealed(sealed) => sealed.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.write(bytes),
            Wire::Sealed(sealed) => sealed.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.flush(),
            Wire::Sealed(sealed) => sealed.flush(),
        }
    }
}

fn upgrade(room: &str) -> String {
    format!(
        "GET /ws/{room} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// A masked frame with this first byte.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&[first, 0x80 | 126], &length[..], &[0; 4], payload].concat()
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut out);
    out
}

fn broadcast(length: usize) -> Vec<u8> {
    text(&format!(r#"{{"type":"broadcast","payload":"{}"}}"#, "x".repeat(length)))
}

fn kinds(at: &At) -> Vec<Kind> {
    [opening(at), malformed(at), leaving(at), flooding(at)].into_iter().flatten().collect()
}

/// Connections that do not become members, or do so slowly.
fn opening(at: &At) -> Vec<Kind> {
    let [slow, half, heads, paths, idle, silent] = [(); 6].map(|()| at.clone());
    let bytes = at.opening();
    let (mut loris, mut halves): (Held<(TcpStream, usize)>, _) = (Held::new(50), Held::new(100));
    let (mut unopened, mut members) = (Held::new(100), Held::new(100));
    let endless = format!("GET /ws HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(100_000));
    let others = [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /ws HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        "GET /metrics HTTP/1.0\r\n\r\n",
        "GET /ws/%2e%2e/%00 HTTP/1.1\r\nHost: x\r\n\r\n",
        "BREW /coffee HTTP/9.9\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    ];
    let mut others = others.into_iter().cycle();
    vec![
        kind("a byte a second of what opens a connection", 1000, move || {
            while !loris.is_full() {
                loris.add(Ok((dial(slow.addr)?, 0)))?;
            }
            loris.retain(|(stream, sent)| {
                *sent += 1;
                // A connection on which all was sent is replaced.
                let byte = bytes.get(*sent - 1..*sent).ok_or(io::ErrorKind::UnexpectedEof)?;
                stream.write_all(byte)
            });
            Ok(())
        }),
        kind("half an upgrade", 50, move || {
            halves.add(half.say(&upgrade("half").as_bytes()[..70]))
        }),
        kind("headers without an end", 200, move || {
            let mut wire = heads.say(endless.as_bytes())?;
            read_most(&mut wire, 10_000).map(drop)
        }),
        kind("other requests", 50, move || {
            let mut wire = paths.say(others.next().expect("it cycles").as_bytes())?;
            read_most(&mut wire, 10_000).map(drop)
        }),
        kind("connections without a byte", 50, move || unopened.add(dial(idle.addr))),
        kind("members that stay silent", 50, move || members.add(silent.member("silent"))),
    ]
}

/// Members that violate the protocol.
fn malformed(at: &At) -> Vec<Kind> {
    let [large, errors, texts, parts, sealed] = [(); 5].map(|()| at.clone());
    let mut unmasked = Vec::new();
    Frame::text(b"{}").write(&mut unmasked);
    let cases = [
        unmasked,
        frame(0xC1, b"{}"),
        frame(0x83, b"reserved"),
        frame(0x81, &[0xC3, 0x28, 0xFF]),
        frame(0x80, b"a continuation of nothing"),
        frame(0x89, &[b'x'; 126]),
        frame(0x88, &[0]),
        frame(0x88, &[0x03, 0xED]),
    ];
    let mut cases = cases.into_iter().cycle();
    let lengths = [1_u64 << 40, 2 << 20, u64::MAX];
    let mut lengths = lengths.into_iter().cycle();
    let part = [frame(0x01, &[b'x'; 60_000]), frame(0x00, &[b'x'; 100]).repeat(10)].concat();
    let mut unfinished = Held::new(100);
    vec![
        kind("frames that are too long", 100, move || {
            let length = lengths.next().expect("it cycles").to_be_bytes();
            let bytes = [&[0x81, 0xFF], &length[..], &[0; 4], &[b'x'; 1000]].concat();
            read_most(&mut large.speaker("large", &bytes)?, 10_000).map(drop)
        }),
        kind("frames with errors", 50, move || {
            let bytes = cases.next().expect("it cycles");
            read_most(&mut errors.speaker("errors", &bytes)?, 10_000).map(drop)
        }),
        kind("texts that are no messages", 200, move || {
            let bytes =
                [text("{\"type\":"), text("[]"), text("{\"type\":\"x\",\"payload\":1}")].concat();
            let mut wire = texts.speaker("texts", &bytes.repeat(50))?;
            read_most(&mut wire, 100_000).map(drop)
        }),
        kind("fragments of a message without an end", 200, move || {
            unfinished.add(parts.speaker("fragments", &part))
        }),
        kind("bytes after the end", 50, move || {
            let mut wire = sealed.member("after")?;
            match &mut wire {
                Wire::Plain(_) => {
                    let mut close = Vec::new();
                    CloseCode::NORMAL.write_masked("", [5; 4], &mut close);
                    wire.write_all(&[close, broadcast(100).repeat(10)].concat())?;
                }
                Wire::Sealed(sealed) => {
                    sealed.conn.send_close_notify();
                    sealed.flush()?;
                    sealed.sock.write_all(&[23; 1000])?;
                }
            }
            read_most(&mut wire, 10_000).map(drop)
        }),
    ]
}

/// Members that leave while something is pending.
fn leaving(at: &At) -> Vec<Kind> {
    let [closes, resets, halves, churns] = [(); 4].map(|()| at.clone());
    let mut close = broadcast(100).repeat(5);
    CloseCode::NORMAL.write_masked("", [5; 4], &mut close);
    let mut open = Held::new(20);
    vec![
        kind("a Close frame after broadcasts", 50, move || {
            closes.speaker("leaving", &close).map(drop)
        }),
        kind("a reset after broadcasts", 50, move || {
            reset(resets.speaker("leaving", &broadcast(100).repeat(5))?.tcp())
        }),
        kind("half-closes after broadcasts", 50, move || {
            let mut wire = halves.speaker("leaving", &broadcast(100).repeat(5))?;
            wire.tcp().shutdown(Shutdown::Write)?;
            read_most(&mut wire, 10_000).map(drop)
        }),
        kind("joins and leaves", 50, move || open.add(churns.member("leaving"))),
    ]
}

/// Members that send much, and members that do not read.
fn flooding(at: &At) -> Vec<Kind> {
    let [floods, deaf, pings, rooms, larges] = [(); 5].map(|()| at.clone());
    let (mut flood, mut large): (Option<Wire>, Option<Wire>) = (None, None);
    let (mut slow, mut pinging, mut lonely) = (Held::new(20), Held::new(5), Held::new(100));
    let mut ping = Vec::new();
    Frame::ping(&[b'x'; 100]).write_masked([9; 4], &mut ping);
    let mut names = 0;
    vec![
        kind("members that never read, in a room with floods", 500, move || {
            slow.add(deaf.member("flood"))
        }),
        kind("floods a room with small messages", 100, move || {
            let mut wire = flood.take().map_or_else(|| floods.member("flood"), Ok)?;
            wire.write_all(&broadcast(10).repeat(100))?;
            let came = read_most(&mut wire, 10_000)?;
            flood = (!came.is_empty()).then_some(wire);
            Ok(())
        }),
        kind("floods a room with large messages", 500, move || {
            let mut wire = large.take().map_or_else(|| larges.member("flood"), Ok)?;
            wire.write_all(&broadcast(50_000).repeat(5))?;
            let came = read_most(&mut wire, 500_000)?;
            large = (!came.is_empty()).then_some(wire);
            Ok(())
        }),
        kind("pings without reading the pongs", 500, move || {
            pinging.add(pings.speaker("pings", &ping.repeat(2_000)))
        }),
        kind("a room for each member", 50, move || {
            names += 1;
            lonely.add(rooms.speaker(&format!("room-{names}"), &broadcast(10)))
        }),
    ]
}
