//! The hub without sockets, with its input split anywhere, and with random input.

use proptest::prelude::*;
use regatta_engine::{Core, Limits, Next, Now, Sessions};
use regatta_proto::websocket::{Frame, Opcode};
use regatta_service::hub::{Hub, Settings};
use std::time::Instant;

pub const OPENING: &[u8] =
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Returns what a client receives that sends these pieces, and whether the hub closed the
/// connection.
fn play<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let settings = Settings { longest: 1000, ..Settings::default() };
    let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
    let mut core = Core::new(Sessions::new(Hub::new(settings)), Limits::default(), now);
    let conn = core.accept();
    let mut got = Vec::new();
    for piece in pieces {
        core.received(conn, &mut piece.to_vec());
        loop {
            match core.next(conn, &()) {
                Next::Write { .. } => {
                    let output = core.output(conn);
                    got.extend_from_slice(output);
                    let length = output.len();
                    core.wrote(conn, length);
                }
                // Further input is discarded.
                Next::ShutdownWrite => return (got, true),
                Next::Close => return (got, true),
                Next::Wait => break,
            }
        }
    }
    (got, false)
}

/// Returns the frames of a client's message, split into at most this many parts with pings in
/// between.
fn message(text: &str, mask: [u8; 4], parts: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let size = text.len().div_ceil(parts).max(1);
    let mut pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
    if pieces.is_empty() {
        pieces.push(b"");
    }
    let last = pieces.len() - 1;
    for (i, payload) in pieces.into_iter().enumerate() {
        let opcode = if i == 0 { Opcode::Text } else { Opcode::Continuation };
        Frame { opcode, fin: i == last, compressed: false, payload }.write_masked(mask, &mut out);
        if i < last {
            Frame::ping(b"?").write_masked(mask, &mut out);
        }
    }
    out
}

/// Returns the frames after the server's 101 reply, sorted, because the result of a broadcast
/// follows all other replies to the same read.
fn frames(got: &[u8]) -> Vec<&[u8]> {
    let head = got.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer");
    let mut rest = &got[head + 4..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        let length = match rest[1] {
            126 => 4 + usize::from(u16::from_be_bytes([rest[2], rest[3]])),
            length => 2 + usize::from(length),
        };
        let (frame, more) = rest.split_at(length);
        all.push(frame);
        rest = more;
    }
    all.sort_unstable();
    all
}

/// Cuts at these positions, given in any order.
fn cut<'a>(bytes: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|two| &bytes[two[0]..two[1]]).filter(|piece| !piece.is_empty()).collect()
}

proptest! {
    #[test]
    fn replies_to_a_member_do_not_depend_on_how_its_input_is_split(
        texts in prop::collection::vec((".{0,200}", prop::array::uniform4(any::<u8>()), 1..4_usize, 0..3), 0..8),
        at in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let mut input = OPENING.to_vec();
        for (text, mask, parts, kind) in &texts {
            let payload = serde_json::to_string(text).unwrap();
            let text = match kind {
                0 => format!(r#"{{"type":"echo","payload":{payload}}}"#),
                1 => format!(r#"{{"payload":{payload},"type":"broadcast"}}"#),
                _ => text.clone(),
            };
            input.extend_from_slice(&message(&text, *mask, *parts));
        }
        let whole = play([&input[..]]);
        for (got, closed) in [play(cut(&input, &at)), play(input.chunks(1))] {
            prop_assert_eq!((frames(&got), closed), (frames(&whole.0), whole.1));
        }
    }

    /// Any input, with or without an opening before it, leads to a wait or a close, without a panic.
    /// After an opening, a close includes a code.
    #[test]
    fn random_bytes_never_panic_and_a_close_has_a_code(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        at in prop::collection::vec(any::<usize>(), 0..5),
        opens: bool,
    ) {
        let input = if opens { [OPENING, &bytes].concat() } else { bytes };
        let (got, closed) = play(cut(&input, &at));
        if opens && closed {
            let head = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let tail = &got[head + 4..];
            let code = tail.windows(4).rev().find(|four| four[0] == 0x88 && four[1] >= 2);
            prop_assert!(code.is_some(), "{}", tail.escape_ascii());
        }
    }
}

/// Each class of malformed frames closes with its code (RFC 6455, 7.4.1).
#[test]
fn malformed_frames_close_with_the_right_code() {
    let masked = |first: u8, payload: &[u8]| {
        let mut frame = vec![first, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        frame.extend_from_slice(payload);
        frame
    };
    let long = {
        let mut out = Vec::new();
        Frame::text(&[b'x'; 1001]).write_masked([1, 2, 3, 4], &mut out);
        out
    };
    for (what, frames, code) in [
        ("not masked", vec![0x81, 1, b'x'], 1002),
        ("a reserved bit", masked(0xC1, b"x"), 1002),
        ("a reserved opcode", masked(0x83, b"x"), 1002),
        ("a reserved control opcode", masked(0x8B, b"x"), 1002),
        ("a fragmented control frame", masked(0x09, b"x"), 1002),
        (
            "a long control frame",
            {
                let mut frame = vec![0x89, 0xFE, 0, 126, 0, 0, 0, 0];
                frame.extend_from_slice(&[0; 126]);
                frame
            },
            1002,
        ),
        ("a continuation without a start", masked(0x80, b"x"), 1002),
        ("a text inside a text", [masked(0x01, b"x"), masked(0x81, b"y")].concat(), 1002),
        ("invalid UTF-8", masked(0x81, &[0xC3, 0x28]), 1007),
        ("truncated UTF-8", masked(0x81, &[0xC3]), 1007),
        ("a surrogate", masked(0x81, &[0xED, 0xA0, 0x80]), 1007),
        ("a binary message", masked(0x82, b"x"), 1003),
        ("too long", long, 1009),
        ("a close of one byte", masked(0x88, &[3]), 1002),
        ("a close with a reserved code", masked(0x88, &1004_u16.to_be_bytes()), 1002),
        ("a close with invalid UTF-8", masked(0x88, &[3, 0xE8, 0xFF]), 1007),
    ] {
        let (got, closed) = play([OPENING, &frames]);
        assert!(closed, "{what}");
        let at = got.windows(2).rposition(|two| two[0] == 0x88 && two[1] >= 2).expect(what);
        assert_eq!(u16::from_be_bytes([got[at + 2], got[at + 3]]), code, "{what}");
    }
}
