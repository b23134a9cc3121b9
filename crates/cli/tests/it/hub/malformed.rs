//! Every class of malformed frame closes with the right code (RFC 6455, 7.4.1), and random bytes do not
//! harm the server, on every model.
//!
//! Random bytes are sent for at least a second on each model; with `REGATTA_TESTS=full` for a minute.

use crate::support::{
    Server,
    hub::{Patient, Socket, closed, member, on_hub_models, send},
};
use rand::{Rng, RngCore, SeedableRng, rngs::SmallRng};
use regatta_testkit::is_full;
use serde_json::json;
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};
use tungstenite::{
    Message, WebSocket,
    client::client,
    protocol::{Role, frame::coding::CloseCode},
};

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const LONGEST: usize = 4096;

/// A client's frame.
fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![head];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend((long as u16).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// The sent bytes, the expected close code, and the class.
type Case = (Vec<u8>, u16, &'static str);

fn two(first: Vec<u8>, second: Vec<u8>) -> Vec<u8> {
    [first, second].concat()
}

fn cases() -> Vec<Case> {
    let close = |code: u16, reason: &[u8]| frame(0x88, &[&code.to_be_bytes(), reason].concat());
    let mut cases = vec![
        (vec![0x81, 0x01, b'a'], 1002, "a frame without a mask"),
        (frame(0xc1, b"a"), 1002, "RSV1 without an extension"),
        (frame(0xa1, b"a"), 1002, "RSV2"),
        (frame(0x91, b"a"), 1002, "RSV3"),
        (frame(0x09, b""), 1002, "a ping in fragments"),
        (frame(0x0a, b""), 1002, "a pong in fragments"),
        (frame(0x08, b""), 1002, "a close in fragments"),
        (frame(0x89, &[0; 126]), 1002, "a long ping"),
        (frame(0x88, &[0; 126]), 1002, "a long close"),
        (frame(0x80, b"a"), 1002, "a continuation of nothing"),
        (frame(0x00, b"a"), 1002, "a first fragment that continues nothing"),
        (two(frame(0x01, b"a"), frame(0x81, b"b")), 1002, "a message inside another"),
        (two(frame(0x81, b"[]"), frame(0x80, b"")), 1002, "a continuation after the end"),
        (vec![0x81, 0xfe, 0, 125], 1002, "16 bits for a short length"),
        (vec![0x81, 0xff, 0, 0, 0, 0, 0, 0, 255, 255], 1002, "64 bits for a length of 16"),
        (vec![0x81, 0xff, 128, 0, 0, 0, 0, 0, 0, 0], 1002, "a length of 64 bits"),
        (frame(0x88, b"\x03"), 1002, "a close with half a code"),
        (frame(0x81, b"\"\xff\""), 1007, "a byte that is never in UTF-8"),
        (frame(0x81, b"\"\xc0\xaf\""), 1007, "an overlong form"),
        (frame(0x81, b"\"\xed\xa0\x80\""), 1007, "a surrogate"),
        (frame(0x81, b"\"\xf4\x90\x80\x80\""), 1007, "a character beyond the last"),
        (frame(0x81, b"\"\xe2\x82"), 1007, "a character cut at the end"),
        (
            two(frame(0x01, b"\"\xce"), frame(0x80, b"\"")),
            1007,
            "a character cut between fragments",
        ),
        (frame(0x01, b"\"\xff"), 1007, "a bad byte before the last fragment"),
        (close(1000, b"\xff"), 1007, "a reason that is not UTF-8"),
        (frame(0x82, b"a"), 1003, "a binary message"),
        (two(vec![0x81, 0xfe, 0x10, 0x01], MASK.to_vec()), 1009, "a message beyond the limit"),
        (
            two(vec![0x81, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0], MASK.to_vec()),
            1009,
            "a message beyond all memory",
        ),
        (
            two(frame(0x01, &[b'a'; 4000]), [&[0x00, 0xe1][..], &MASK].concat()),
            1009,
            "fragments beyond the limit",
        ),
    ];
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        cases.push((frame(0x80 | opcode, b""), 1002, "a reserved opcode"));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
        cases.push((close(code, b""), 1002, "a code that nobody may send"));
    }
    cases
}

/// With permessage-deflate (RFC 7692).
fn compressed() -> Vec<Case> {
    vec![
        (frame(0xc1, &[0xff; 9]), 1002, "invalid compressed data"),
        (frame(0xc9, b""), 1002, "a compressed ping"),
        (two(frame(0x41, b"\x00"), frame(0xc0, b"")), 1002, "a continuation marked as compressed"),
        (frame(0xc1, &bomb()), 1009, "a message that grows beyond the limit"),
    ]
}

/// 10,321 zeros, compressed: a fixed block with a zero, and 40 copies of 258 bytes at distance 1.
fn bomb() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.push(0b010, 3); // a last block would be 011; type 01, fixed codes
    bits.push_code(0x30, 8); // the literal 0
    for _ in 0..40 {
        bits.push_code(0b1100_0101, 8); // length 258: symbol 285
        bits.push_code(0, 5); // distance 1
    }
    bits.push_code(0, 7); // the end of the block
    bits.push(0b000, 3); // the empty stored block, whose four bytes are left out
    bits.bytes
}

/// A writer of bits in DEFLATE's order (RFC 1951, 3.1.1).
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    /// A number: its lowest bit first.
    fn push(&mut self, number: u32, length: u32) {
        for bit in 0..length {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= ((number >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }

    /// A code: its highest bit first.
    fn push_code(&mut self, code: u32, length: u32) {
        (0..length).rev().for_each(|bit| self.push(code >> bit & 1, 1));
    }
}

fn closes(model: &str, options: &[&str], cases: &[Case]) {
    let longest = LONGEST.to_string();
    let options = [&["--longest-message", &longest], options].concat();
    let server = Server::of("hub", model, &options);
    let mut witness = member(&server);
    for (bytes, code, class) in cases {
        let mut socket = match options.contains(&"--deflate") {
            true => member_that_compresses(&server),
            false => member(&server),
        };
        socket.get_mut().write_all(bytes).unwrap();
        assert_eq!(closed(&mut socket), Some(CloseCode::from(*code)), "{model}: {class}");
        // No byte follows the Close frame.
        let mut rest = Vec::new();
        let stream = &mut socket.get_mut().0;
        stream.shutdown(Shutdown::Write).unwrap();
        let ended = stream.read_to_end(&mut rest);
        let reset = ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert!(ended.is_ok() || reset, "{model}: {class}: {ended:?}");
        assert!(rest.is_empty(), "{model}: {class}: {rest:x?}");
    }
    assert!(is_served(&mut witness), "{model}");
}

/// Returns whether a member gets an echo. Pings may come before it.
fn is_served(member: &mut Socket) -> bool {
    send(member, &json!({"type": "echo", "payload": "still there"}));
    loop {
        match member.read().unwrap() {
            Message::Ping(_) => {}
            Message::Text(text) => return text.contains("still there"),
            _ => return false,
        }
    }
}

/// Connects a member with compression. The client crate has no extensions, so this does the handshake.
fn member_that_compresses(server: &Server) -> Socket {
    let mut stream = server.connect();
    let request = "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                   Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.contains("permessage-deflate"), "{head}");
    WebSocket::from_raw_socket(Patient(stream), Role::Client, None)
}

on_hub_models!(every_class_of_malformed_frame_closes_with_its_code);

fn every_class_of_malformed_frame_closes_with_its_code(model: &'static str) {
    closes(model, &[], &cases());
}

on_hub_models!(every_class_of_malformed_compressed_frame_closes_with_its_code);

fn every_class_of_malformed_compressed_frame_closes_with_its_code(model: &'static str) {
    closes(model, &["--deflate"], &compressed());
}

/// Random bytes for one connection.
fn nonsense(random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = vec![0; random.random_range(1..4000)];
    random.fill_bytes(&mut bytes);
    if random.random_bool(0.3) {
        return bytes;
    }
    // Frames whose heads are often valid, so that some are decoded further.
    let mut frames = Vec::new();
    for part in bytes.chunks(random.random_range(1..200)) {
        let opcode = [0, 1, 1, 2, 8, 9, 9, 10][random.random_range(0..8)];
        let fin = if random.random_bool(0.8) { 0x80 } else { 0 };
        let text: Vec<u8> = part.iter().map(|byte| byte & 0x7f).collect();
        frames.extend(frame(fin | opcode, if random.random_bool(0.9) { &text } else { part }));
        if random.random_bool(0.02) {
            let at = random.random_range(0..frames.len());
            frames[at] ^= 1 << random.random_range(0..8);
        }
    }
    frames
}

/// Sends random bytes, half-closes, and reads until the server closes.
fn harass(server: &Server, random: &mut SmallRng) {
    let mut stream = server.connect();
    if random.random_bool(0.9) {
        let url = format!(
            "ws://{}/{}",
            server.addr,
            ["ws", "ws/room", "echo"][random.random_range(0..3)]
        );
        stream = client(url, Patient(stream)).expect("the hub opens a WebSocket").0.into_inner().0;
    }
    // The server may have closed it already.
    let sent = stream.write_all(&nonsense(random)).and_then(|()| stream.shutdown(Shutdown::Write));
    let ended = sent.and_then(|()| read_to_the_end(&mut stream));
    if let Err(error) = ended {
        let kinds = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::NotConnected];
        assert!(kinds.contains(&error.kind()), "the hub does not close a connection: {error}");
    }
}

fn read_to_the_end(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut rest = [0; 4096];
    while Patient(stream.try_clone()?).read(&mut rest)? > 0 {}
    Ok(())
}

on_hub_models!(random_bytes_do_not_harm_the_server);

fn random_bytes_do_not_harm_the_server(model: &str) {
    let time = Duration::from_secs(if is_full() { 60 } else { 1 });
    let server = Server::of("hub", model, &["--cores", "2", "--echo", "--deflate"]);
    let mut random = SmallRng::seed_from_u64(7);
    let mut witness = member(&server);
    let (mut connections, mut before) = (0, 0);
    let end = Instant::now() + time;
    while Instant::now() < end || connections < 200 {
        harass(&server, &mut random);
        connections += 1;
        if connections == 100 {
            before = server.memory();
        }
        // Before the witness is silent for too long and gets a ping.
        if connections % 100 == 0 {
            assert!(is_served(&mut witness), "{model}, after {connections} connections");
        }
    }
    let after = server.memory();
    println!(
        "{model}: {connections} connections, {} KiB more",
        after.saturating_sub(before) / 1024
    );
    assert!(after < before + (8 << 20), "{model}: from {before} to {after} bytes");
    assert!(is_served(&mut witness), "{model}");
    assert!(is_served(&mut member(&server)), "{model}");
}
