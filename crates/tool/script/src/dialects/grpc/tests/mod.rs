//! The load against a server that answers honestly, and against one that lies.

mod json;

use super::{reply::Reply, *};
use crate::{
    Compiled, Workload,
    dialects::http2::pair::{Asked, Pair},
    protocol::{CompileOptions, Destination},
};
use regatta_http2::{
    frame::write,
    hpack::{Encoder, Indexing},
};
use regatta_record::Exchange;

const PIPELINE: usize = 8;

const TEXT: &str = r#"
protocol = "grpc"

[[request]]
path = "/test.Items/Get"
message_hex = "0801"
expect_hex = "0a036f6e65"

[[request]]
path = "/test.Items/Get"
message_hex = "0802"
expect_hex = "0a0374776f"

[[request]]
path = "/test.Items/Clear"
expect_hex = ""

[[request]]
path = "/test.Items/Any"
message_hex = "ff"
"#;

fn pair() -> Pair<Reply> {
    of_file(TEXT)
}

pub(super) fn of_file(text: &str) -> Pair<Reply> {
    let workload = Workload::from_text(text, "items").unwrap();
    let place = Destination { host: "a.test:1", ..Destination::default() };
    let order = CompileOptions { seed: 3, pipeline: PIPELINE, place, ..CompileOptions::default() };
    match workload.compile(&order).unwrap() {
        Compiled::Grpc(dialect) => Pair::new(dialect),
        _ => panic!("another protocol"),
    }
}

/// The message that answers a request.
fn message(asked: &Asked) -> &'static [u8] {
    match &asked.content[..] {
        b"\0\0\0\0\x02\x08\x01" => b"\x0a\x03one",
        b"\0\0\0\0\x02\x08\x02" => b"\x0a\x03two",
        b"\0\0\0\0\0" => b"",
        b"\0\0\0\0\x01\xff" => b"any",
        other => panic!("{other:?}"),
    }
}

pub(super) type Fields<'a> = &'a [(&'a str, &'a str)];

pub(super) const HEAD: Fields<'_> = &[(":status", "200"), ("content-type", "application/grpc")];
pub(super) const OK: Fields<'_> = &[("grpc-status", "0")];

/// A response, in parts.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub head: Vec<(String, String)>,
    /// The content with its prefix; `None` sends no DATA frame.
    pub content: Option<Vec<u8>>,
    /// `None` ends the stream without trailers.
    pub trailers: Option<Vec<(String, String)>>,
    /// Maximum length of a DATA frame.
    pub frame: u32,
}

pub(super) fn owned(fields: Fields<'_>) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

impl Answer {
    pub fn right(message: &[u8]) -> Answer {
        let mut content = Vec::new();
        framing::write(message, &mut content);
        Answer { head: owned(HEAD), content: Some(content), trailers: Some(owned(OK)), frame: 4 }
    }

    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        let frame = |fields: &[(String, String)], ends, out: &mut Vec<u8>| {
            let mut block = Vec::new();
            let fields = fields
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
            Encoder::default().encode(fields, &mut block);
            write::headers(out, |_| (), (stream, ends), &block, 16_384);
        };
        let is_bare = self.content.is_none() && self.trailers.is_none();
        frame(&self.head, is_bare, out);
        if let Some(content) = &self.content {
            write::data(out, |_| (), (stream, self.trailers.is_none()), content, self.frame);
        }
        if let Some(trailers) = &self.trailers {
            frame(trailers, true, out);
        }
    }
}

/// One turn of an honest server, the last request first.
fn honest_turn(pair: &mut Pair<Reply>) -> Vec<u8> {
    let mut out = Vec::new();
    for asked in pair.asked(&mut out).iter().rev() {
        Answer::right(message(asked)).write(asked.stream, &mut out);
    }
    out
}

#[test]
fn a_request_is_a_call_without_compression() {
    let mut pair = pair();
    for asked in pair.asked(&mut Vec::new()) {
        let field = |name: &str| {
            asked.fields.get(name.as_bytes()).map(|value| value.escape_ascii().to_string())
        };
        assert_eq!(field(":method").as_deref(), Some("POST"));
        assert_eq!(field(":scheme").as_deref(), Some("http"));
        assert_eq!(field(":authority").as_deref(), Some("a.test:1"));
        assert_eq!(field("te").as_deref(), Some("trailers"));
        assert_eq!(field("content-type").as_deref(), Some("application/grpc"));
        assert_eq!(field("content-length"), None);
        assert!(field(":path").unwrap().starts_with("/test.Items/"));
        message(&asked);
    }
}

/// The window of the connection is 65,535 bytes, and the server never raises it.
#[test]
fn a_response_to_a_message_that_was_not_sent_is_wrong() {
    let message = "00".repeat(70_000);
    let text =
        format!("protocol = \"grpc\"\n[[request]]\npath = \"/a/b\"\nmessage_hex = \"{message}\"\n");
    let mut pair = of_file(&text);
    let mut out = Vec::new();
    let first = pair.asked(&mut out)[0].stream;
    Answer::right(b"x").write(first, &mut out);
    let wrong = pair.try_receive(&out, 100).unwrap_err();
    let expected = "the server has got only 65535 bytes of the request's content";
    assert!(wrong.received.contains(expected), "{wrong:?}");
    assert_eq!(pair.answered, 0);
}

#[test]
fn honest_responses_in_pieces_of_any_size_are_right() {
    for size in [1, 2, 3, 5, 7, 9, 10, 11, 16, 17, 50, 1 << 16] {
        let mut pair = pair();
        for turn in 1..=10 {
            let bytes = honest_turn(&mut pair);
            pair.receive(&bytes, size);
            assert_eq!(pair.answered, turn * PIPELINE as u32);
        }
    }
}

#[test]
fn nothing_is_allocated_after_the_first_turns() {
    let mut pair = pair();
    for turn in 0..200 {
        if turn == 50 {
            pair.allocations = 0;
        }
        let bytes = honest_turn(&mut pair);
        pair.receive(&bytes, 100);
    }
    assert_eq!(pair.allocations, 0);
    assert_eq!(pair.answered, 200 * PIPELINE as u32);
}

/// What the load finds on a new connection if one response, after honest turns, is changed. The server answers
/// in pieces of `size` bytes.
fn found(
    pair: &mut Pair<Reply>,
    change: &dyn Fn(&mut Answer),
    size: usize,
) -> Result<(), Box<Exchange>> {
    pair.reconnect();
    for _ in 0..3 {
        let bytes = honest_turn(pair);
        pair.receive(&bytes, 1 << 16);
    }
    let mut has_lied = false;
    while !has_lied {
        let mut out = Vec::new();
        for asked in pair.asked(&mut out).iter().rev() {
            let mut answer = Answer::right(message(asked));
            if !has_lied && message(asked) == b"\x0a\x03one" {
                has_lied = true;
                change(&mut answer);
            }
            answer.write(asked.stream, &mut out);
        }
        pair.try_receive(&out, size)?;
    }
    Ok(())
}

/// A change of a response, and a part of the text that must name it.
type Lie<'l> = (&'l str, &'l dyn Fn(&mut Answer));

pub(super) fn content(answer: &mut Answer) -> &mut Vec<u8> {
    answer.content.as_mut().unwrap()
}

pub(super) fn set(fields: &mut Vec<(String, String)>, name: &str, value: &str) {
    fields.retain(|(other, _)| other != name);
    fields.push((name.into(), value.into()));
}

/// All of these are found, at any size of pieces.
fn all_found(lies: &[Lie<'_>]) {
    let mut pair = pair();
    for (part, change) in lies {
        for size in [1, 3, 7, 50, 1 << 16] {
            let exchange = found(&mut pair, change, size).expect_err(part);
            assert!(exchange.received.contains(part), "{part}: {exchange:?}");
            assert!(exchange.sent.starts_with("POST /test.Items/Get HTTP/2"), "{exchange:?}");
            let expected = "status 200, the message 0a036f6e65 (5 bytes) and grpc-status 0 (OK)";
            assert!(exchange.expected.starts_with(expected), "{exchange:?}");
        }
    }
}

#[test]
fn an_unchanged_response_is_right() {
    assert_eq!(found(&mut pair(), &|_| (), 7), Ok(()));
}

#[test]
fn every_wrong_message_is_found() {
    all_found(&[
        ("differs from byte 2 on: 74", &|answer| *answer = Answer::right(b"\x0a\x03two")),
        ("differs from byte 4 on: 66", &|answer| content(answer)[9] = b'f'),
        ("ends after 4 bytes; its prefix announces 5", &|answer| {
            content(answer).pop();
        }),
        ("ends after 3 of the 5 bytes of its prefix", &|answer| content(answer).truncate(3)),
        ("no message, and grpc-status 0 (OK)", &|answer| content(answer).clear()),
        ("no message, and grpc-status 0 (OK)", &|answer| answer.content = None),
        ("more bytes behind the message of 5 bytes", &|answer| content(answer).push(0)),
        ("more bytes behind the message of 5 bytes", &|answer| {
            let again = content(answer).clone();
            content(answer).extend(again);
        }),
        ("a message of 4 bytes", &|answer| content(answer)[4] = 4),
        ("a message of 6 bytes", &|answer| content(answer)[4] = 6),
        ("a message of 16777221 bytes", &|answer| content(answer)[1] = 1),
        ("flag for compression", &|answer| content(answer)[0] = 1),
        ("the flag 128", &|answer| content(answer)[0] = 128),
    ]);
}

#[test]
fn every_wrong_outcome_is_found() {
    fn trailers(answer: &mut Answer) -> &mut Vec<(String, String)> {
        answer.trailers.as_mut().unwrap()
    }
    all_found(&[
        ("grpc-status 5 (NOT_FOUND): no item", &|answer| {
            *trailers(answer) = owned(&[("grpc-status", "5"), ("grpc-message", "no%20item")]);
        }),
        // The status explains why the message is missing.
        ("grpc-status 13 (INTERNAL)", &|answer| {
            set(trailers(answer), "grpc-status", "13");
            answer.content = None;
        }),
        ("no grpc-status in the trailers", &|answer| {
            *trailers(answer) = owned(&[("x-other", "0")]);
        }),
        ("several fields grpc-status: 0 (OK), 0 (OK)", &|answer| {
            let again = trailers(answer)[0].clone();
            trailers(answer).push(again);
        }),
        ("\"00\" (not a code of gRPC)", &|answer| set(trailers(answer), "grpc-status", "00")),
        ("no trailers, and so no grpc-status", &|answer| answer.trailers = None),
        ("grpc-status 0 (OK) in the head, although", &|answer| {
            set(&mut answer.head, "grpc-status", "0");
        }),
        (
            "grpc-status 12 (UNIMPLEMENTED): a; no message (the response has only trailers)",
            &|answer| {
                set(&mut answer.head, "grpc-status", "12");
                set(&mut answer.head, "grpc-message", "a");
                (answer.content, answer.trailers) = (None, None);
            },
        ),
        ("grpc-status 0 (OK); no message (the response has only trailers)", &|answer| {
            set(&mut answer.head, "grpc-status", "0");
            (answer.content, answer.trailers) = (None, None);
        }),
        ("the status 200 and no grpc-status", &|answer| {
            (answer.content, answer.trailers) = (None, None);
        }),
    ]);
}

#[test]
fn every_wrong_head_is_found() {
    all_found(&[
        ("the status 503 and no grpc-status, content-type application/grpc", &|answer| {
            answer.head[0].1 = "503".into();
        }),
        ("content-type application/json; expected application/grpc", &|answer| {
            answer.head[1].1 = "application/json".into();
        }),
        ("content-type application/grpc-web;", &|answer| {
            answer.head[1].1 = "application/grpc-web".into();
        }),
        ("content-type missing", &|answer| {
            answer.head.pop();
        }),
        ("content-type application/grpc and application/grpc", &|answer| {
            let again = answer.head[1].clone();
            answer.head.push(again);
        }),
    ]);
}

#[test]
fn heads_may_name_the_encoding_of_messages_and_have_other_fields() {
    let mut pair = pair();
    for kind in ["application/grpc+proto", "application/grpc;x=y"] {
        let change = |answer: &mut Answer| {
            set(&mut answer.head, "content-type", kind);
            set(&mut answer.head, "grpc-encoding", "identity");
            set(answer.trailers.as_mut().unwrap(), "grpc-message", "");
        };
        assert_eq!(found(&mut pair, &change, 7), Ok(()), "{kind}");
    }
}

#[test]
fn messages_swapped_between_streams_are_found() {
    let mut pair = pair();
    let mut out = Vec::new();
    let asked = pair.asked(&mut out);
    let of = |wanted: &[u8]| asked.iter().position(|asked| message(asked) == wanted).unwrap();
    let (one, two) = (of(b"\x0a\x03one"), of(b"\x0a\x03two"));
    for (i, each) in asked.iter().enumerate() {
        let from = if i == one {
            two
        } else if i == two {
            one
        } else {
            i
        };
        Answer::right(message(&asked[from])).write(each.stream, &mut out);
    }
    let exchange = pair.try_receive(&out, 1 << 16).unwrap_err();
    assert!(exchange.received.contains("differs from byte 2"), "{exchange:?}");
}

/// Without an expected message, any whole one is right, and the other rules still hold.
#[test]
fn any_message_must_still_be_whole() {
    let mut pair = pair();
    let exchange = loop {
        let mut out = Vec::new();
        for asked in pair.asked(&mut out) {
            let mut answer = Answer::right(message(&asked));
            if message(&asked) == b"any" {
                content(&mut answer).pop();
            }
            answer.write(asked.stream, &mut out);
        }
        if let Err(exchange) = pair.try_receive(&out, 1 << 16) {
            break exchange;
        }
    };
    assert!(exchange.received.contains("its prefix announces 3 bytes"), "{exchange:?}");
    assert!(exchange.expected.starts_with("status 200, one message and"), "{exchange:?}");
}

#[test]
fn a_wrong_response_that_is_tolerated_leaves_the_connection_usable() {
    use crate::dialect::{At, Dialect};
    let mut pair = pair();
    pair.dialect.tolerate(&mut pair.desk);
    let mut out = Vec::new();
    for (i, asked) in pair.asked(&mut out).iter().enumerate() {
        let mut answer = Answer::right(message(asked));
        if i % 2 == 0 {
            set(answer.trailers.as_mut().unwrap(), "grpc-status", "14");
        }
        answer.write(asked.stream, &mut out);
    }
    let (mut rest, mut right, mut wrong) = (&out[..], 0, 0);
    while !rest.is_empty() {
        let Pair { dialect, cursor, talk, desk, .. } = &mut pair;
        match dialect.receive(At { cursor, talk, desk }, rest, 0, &mut ()) {
            Ok(more) => {
                right += more;
                rest = &[];
            }
            Err(exchange) => {
                assert_eq!(exchange.received, "grpc-status 14 (UNAVAILABLE)");
                right += exchange.reply_index as u32;
                wrong += 1;
                rest = &rest[dialect.resume(talk).expect("a usable connection")..];
            }
        }
    }
    assert_eq!((right, wrong), (PIPELINE as u32 / 2, PIPELINE / 2));
    assert_eq!(pair.cursor.owed(), 0);
}

/// The frames that the null server sends for a call, on its stream.
fn on_stream(reply: &[u8], stream: u32) -> Vec<u8> {
    let mut frames = reply.to_vec();
    let mut at = 0;
    while at < frames.len() {
        let length = u32::from_be_bytes([0, frames[at], frames[at + 1], frames[at + 2]]);
        frames[at + 5..at + 9].copy_from_slice(&stream.to_be_bytes());
        at += 9 + length as usize;
    }
    frames
}

#[test]
fn a_server_that_answers_all_calls_alike_gets_them_with_one_expected_message() {
    let asks = |text| Workload::from_text(text, "items").unwrap();
    let weighted = TEXT.replace("message_hex = \"0802\"", "weight = 2\nmessage_hex = \"0802\"");
    let (workload, canned) = asks(&weighted).canned(Destination::default()).unwrap();
    assert_eq!(canned.request_bytes, 1);
    let place = Destination { host: "a.test:1", ..Destination::default() };
    let order = CompileOptions { seed: 3, pipeline: PIPELINE, place, ..CompileOptions::default() };
    let Compiled::Grpc(dialect) = workload.compile(&order).unwrap() else { panic!("gRPC") };
    let mut pair = Pair::new(dialect);
    let mut out = Vec::new();
    for asked in pair.asked(&mut out) {
        assert!(asked.fields.iter().any(|field| field.name == b"te"));
        out.extend(on_stream(&canned.reply, asked.stream));
    }
    pair.receive(&out, 7);
    assert_eq!(pair.answered, PIPELINE as u32);
    assert!(canned.reply.windows(5).any(|part| part == b"\x0a\x03two"), "the most frequent one");
}

#[test]
fn a_long_message_has_no_canned_response() {
    let text = |bytes: usize| {
        let hex = "00".repeat(bytes);
        format!("protocol = 'grpc'\n[[request]]\npath = '/a.B/C'\nexpect_hex = '{hex}'")
    };
    let canned = |bytes| {
        let workload = Workload::from_text(&text(bytes), "a").unwrap();
        workload.canned(Destination::default())
    };
    assert!(canned(4096).is_some());
    assert!(canned(4097).is_none());
}
