//! The load against a server that streams honestly, and against one that lies.

mod json;

use super::super::{
    framing,
    reply::Reply,
    tests::{Answer, OK, content, of_file, owned, set},
};
use crate::{
    dialect::{Streamed, Unanswered},
    dialects::http2::pair::{Asked, Pair},
};
use regatta_http2::{ErrorCode, frame::write};
use regatta_record::Exchange;

const STREAMS: u32 = 8;

const TEXT: &str = r#"
protocol = "grpc"

[[request]]
path = "/test.Items/Watch"
stream = true
messages = 5
expect_hex = "0a{n:varint}6162{n+299:fixed32}"

[[request]]
path = "/test.Items/None"
stream = true
messages = 0

[[request]]
path = "/test.Items/Any"
stream = true

[[request]]
path = "/test.Items/Get"
expect_hex = "6f"
"#;

/// A message of [`TEXT`], by its number.
fn watched(number: u8) -> Vec<u8> {
    let mut message = vec![0x0a, number, b'a', b'b'];
    message.extend_from_slice(&(299 + u32::from(number)).to_le_bytes());
    message
}

fn path(asked: &Asked) -> String {
    String::from_utf8(asked.fields.get(b":path").unwrap().to_vec()).unwrap()
}

/// A right response of these messages.
fn stream(messages: &[Vec<u8>]) -> Answer {
    let mut answer = Answer::right(b"");
    content(&mut answer).clear();
    messages.iter().for_each(|message| framing::write(message, content(&mut answer)));
    answer
}

fn only_trailers() -> Answer {
    let mut answer = stream(&[]);
    set(&mut answer.head, "grpc-status", "0");
    (answer.content, answer.trailers) = (None, None);
    answer
}

fn five() -> Vec<Vec<u8>> {
    (1..=5).map(watched).collect()
}

/// The right response to a request.
fn right(asked: &Asked) -> Answer {
    match &path(asked)[..] {
        "/test.Items/Watch" => stream(&five()),
        "/test.Items/None" if asked.stream % 4 == 1 => only_trailers(),
        "/test.Items/None" => stream(&[]),
        "/test.Items/Any" => stream(&vec![b"any".to_vec(); asked.stream as usize % 7 / 2]),
        _ => Answer::right(b"o"),
    }
}

/// One turn of an honest server, the last request first.
fn honest_turn(pair: &mut Pair<Reply>, frame: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for asked in pair.asked(&mut out).iter().rev() {
        Answer { frame, ..right(asked) }.write(asked.stream, &mut out);
    }
    out
}

#[test]
fn honest_streams_in_pieces_and_frames_of_any_size_are_right() {
    for size in [1, 2, 5, 13, 17, 1 << 16] {
        for frame in [1, 4, 13, 1 << 14] {
            let mut pair = of_file(TEXT);
            for turn in 1..=6 {
                let bytes = honest_turn(&mut pair, frame);
                pair.receive(&bytes, size);
                assert_eq!(pair.answered, turn * STREAMS);
            }
            let is_unary = pair.streamed.len() < pair.answered as usize;
            let of_five = pair.streamed.iter().any(|streamed| streamed.messages == 5);
            let empty = pair.streamed.iter().any(|streamed| streamed.messages == 0);
            assert!(is_unary && of_five && empty, "{:?}", pair.streamed);
        }
    }
}

#[test]
fn nothing_is_allocated_after_the_first_turns() {
    let mut pair = of_file(TEXT);
    for turn in 0..200 {
        if turn == 50 {
            pair.allocations = 0;
        }
        let bytes = honest_turn(&mut pair, 1 << 14);
        pair.receive(&bytes, 100);
    }
    assert_eq!(pair.allocations, 0);
    assert_eq!(pair.answered, 200 * STREAMS);
}

/// What the load finds on a new connection if the response to one request for `of`, after honest turns, is
/// changed. The server answers in pieces of `size` bytes.
fn found(
    pair: &mut Pair<Reply>,
    of: &str,
    change: &dyn Fn(&mut Answer),
    size: usize,
) -> Result<(), Box<Exchange>> {
    pair.reconnect();
    for _ in 0..3 {
        let bytes = honest_turn(pair, 4);
        pair.receive(&bytes, 1 << 16);
    }
    let mut has_lied = false;
    while !has_lied {
        let mut out = Vec::new();
        for asked in pair.asked(&mut out).iter().rev() {
            let mut answer = right(asked);
            if !has_lied && path(asked) == of {
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

/// All of these are found, at any size of pieces.
fn all_found(of: &str, expected: &str, lies: &[Lie<'_>]) {
    let mut pair = of_file(TEXT);
    for (part, change) in lies {
        for size in [1, 3, 7, 14, 50, 1 << 16] {
            let exchange = found(&mut pair, of, change, size).expect_err(part);
            assert!(exchange.received.contains(part), "{part}: {exchange:?}");
            assert!(exchange.sent.starts_with(&format!("POST {of} HTTP/2")), "{exchange:?}");
            assert!(exchange.expected.starts_with(expected), "{exchange:?}");
        }
    }
}

const WATCH: &str = "/test.Items/Watch";
const EXPECTED: &str =
    "status 200, 5 messages, each 0a{n:varint}6162{n+299:fixed32} and grpc-status 0 (OK)";

#[test]
fn an_unchanged_stream_is_right() {
    assert_eq!(found(&mut of_file(TEXT), WATCH, &|_| (), 7), Ok(()));
}

/// Length of a message of [`watched`] with its prefix.
const FRAMED: usize = 13;

#[test]
fn every_wrong_message_is_found_with_its_number() {
    let of = |messages: &[u8]| stream(&messages.iter().copied().map(watched).collect::<Vec<_>>());
    all_found(
        WATCH,
        EXPECTED,
        &[
            ("message 3: a message that differs from byte 1 on: 04", &|answer| {
                *answer = of(&[1, 2, 4, 5]);
            }),
            (
                "no message 5: the stream ended after 4 of 5 messages, and grpc-status 0",
                &|answer| {
                    *answer = of(&[1, 2, 3, 4]);
                },
            ),
            ("message 3: a message that differs from byte 1 on: 02", &|answer| {
                *answer = of(&[1, 2, 2, 3, 4, 5]);
            }),
            ("message 2: a message that differs from byte 1 on: 03", &|answer| {
                *answer = of(&[1, 3, 2, 4, 5]);
            }),
            ("bytes of message 6; expected 5 messages", &|answer| {
                *answer = of(&[1, 2, 3, 4, 5, 6]);
            }),
            ("bytes of message 6; expected 5 messages", &|answer| content(answer).push(0)),
            ("message 4: a message that differs from byte 7 on: 01", &|answer| {
                content(answer)[4 * FRAMED - 1] = 1;
            }),
            ("message 4: a message that ends after 3 bytes; its prefix announces 8", &|answer| {
                content(answer).truncate(3 * FRAMED + 8);
            }),
            ("message 4: a message that ends after 2 of the 5 bytes of its prefix", &|answer| {
                content(answer).truncate(3 * FRAMED + 2);
            }),
            ("message 2: a message with the flag for compression", &|answer| {
                content(answer)[FRAMED] = 1;
            }),
            ("message 5: a message of 7 bytes; expected 8 bytes", &|answer| {
                content(answer)[4 * FRAMED + 4] = 7;
            }),
            // The first one early, and empty.
            ("message 1: a message of 0 bytes; expected 8 bytes", &|answer| {
                content(answer)[4] = 0;
            }),
            ("no message 1: the stream ended after 0 of 5 messages", &|answer| {
                content(answer).clear();
            }),
        ],
    );
}

#[test]
fn every_wrong_end_is_found_with_the_number_of_messages() {
    all_found(
        WATCH,
        EXPECTED,
        &[
            ("grpc-status 13 (INTERNAL): a b, after 3 messages", &|answer| {
                content(answer).truncate(3 * FRAMED);
                answer.trailers = Some(owned(&[("grpc-status", "13"), ("grpc-message", "a%20b")]));
            }),
            ("grpc-status 13 (INTERNAL), after 1 message", &|answer| {
                content(answer).truncate(FRAMED + 8);
                answer.trailers = Some(owned(&[("grpc-status", "13")]));
            }),
            ("no grpc-status in the trailers, after 5 messages", &|answer| {
                answer.trailers = Some(owned(&[("x-other", "0")]));
            }),
            ("(END_STREAM on DATA), after 5 messages", &|answer| answer.trailers = None),
            ("(END_STREAM on DATA), after 2 messages", &|answer| {
                content(answer).truncate(2 * FRAMED);
                answer.trailers = None;
            }),
            (
                "no message 1: the stream ended after 0 of 5 messages, and grpc-status 0",
                &|answer| {
                    *answer = only_trailers();
                },
            ),
            ("grpc-status 12 (UNIMPLEMENTED); no message (the response has only", &|answer| {
                *answer = only_trailers();
                set(&mut answer.head, "grpc-status", "12");
            }),
            ("grpc-status 0 (OK) in the head, although the response goes on", &|answer| {
                set(&mut answer.head, "grpc-status", "0");
            }),
            ("content-type application/json; expected application/grpc", &|answer| {
                set(&mut answer.head, "content-type", "application/json");
            }),
            ("the status 503 and no grpc-status", &|answer| answer.head[0].1 = "503".into()),
        ],
    );
}

#[test]
fn every_wrong_stream_of_no_message_is_found() {
    let expected = "status 200, no message and grpc-status 0 (OK) in the trailers";
    all_found(
        "/test.Items/None",
        expected,
        &[
            ("bytes of message 1; expected 0 messages", &|answer| *answer = stream(&[vec![]])),
            ("bytes of message 1; expected 0 messages", &|answer| {
                *answer = stream(&[]);
                content(answer).push(0);
            }),
            // The same fields were right as trailers, more than once.
            ("grpc-status 0 (OK) in the head, although the response goes on", &|answer| {
                *answer = stream(&[]);
                set(&mut answer.head, "grpc-status", "0");
            }),
            ("content-type missing; expected application/grpc", &|answer| {
                *answer = only_trailers();
                answer.head.retain(|(name, _)| name != "content-type");
            }),
            ("several fields grpc-status: 0 (OK), 0 (OK)", &|answer| {
                *answer = only_trailers();
                let again = answer.head.last().unwrap().clone();
                answer.head.push(again);
            }),
            ("the status 404 and grpc-status 0 (OK)", &|answer| {
                *answer = only_trailers();
                answer.head[0].1 = "404".into();
            }),
        ],
    );
}

/// Without a number and a template, any messages are right if they are whole.
#[test]
fn any_messages_must_still_be_whole() {
    let expected = "status 200, any number of messages and grpc-status 0 (OK) in the trailers";
    all_found(
        "/test.Items/Any",
        expected,
        &[
            ("message 2: a message that ends after 1 bytes; its prefix announces 2", &|answer| {
                *answer = stream(&[b"a".to_vec(), b"bc".to_vec()]);
                content(answer).pop();
            }),
            ("grpc-status 14 (UNAVAILABLE), after 1 message", &|answer| {
                *answer = stream(&[b"a".to_vec()]);
                answer.trailers = Some(owned(&[("grpc-status", "14")]));
            }),
        ],
    );
    for messages in [vec![], vec![vec![]; 3], vec![vec![7; 100_000]]] {
        let change = |answer: &mut Answer| *answer = stream(&messages);
        assert_eq!(found(&mut of_file(TEXT), "/test.Items/Any", &change, 1 << 12), Ok(()));
    }
}

/// One stream of five messages per connection.
fn one_watch() -> Pair<Reply> {
    let text = TEXT.split("[[request]]").take(2).collect::<Vec<_>>().join("[[request]]");
    of_file(&text)
}

/// A response with all its content in one DATA frame, and where that content begins.
fn framed(answer: &Answer, stream_id: u32) -> (Vec<u8>, usize) {
    let (mut whole, mut head) = (Vec::new(), Vec::new());
    Answer { frame: 1 << 14, ..answer.clone() }.write(stream_id, &mut whole);
    Answer { content: None, trailers: Some(Vec::new()), ..answer.clone() }
        .write(stream_id, &mut head);
    // Behind the head is a frame without fields, which has a header like a DATA frame.
    (whole, head.len())
}

#[test]
fn the_first_message_and_the_longest_gap_are_those_of_whole_messages() {
    let mut pair = one_watch();
    let mut out = Vec::new();
    let asked = pair.asked(&mut out);
    let (answer, content) = framed(&right(&asked[0]), asked[0].stream);
    let end_of = |messages: usize| out.len() + content + messages * FRAMED;
    let all = [&out[..], &answer].concat();
    let mut from = 0;
    for (until, now) in [
        // All but the last byte of the first message comes early.
        (end_of(1) - 1, 10),
        (end_of(1), 500),
        (end_of(3), 700),
        (end_of(4) - 1, 710),
        (end_of(4), 1_900),
        (all.len(), 2_000),
    ] {
        pair.now = now;
        pair.receive(&all[from..until], 1 << 16);
        from = until;
    }
    let streamed = Streamed { messages: 5, first_at: Some(500), longest_gap: Some(1_200) };
    assert_eq!(pair.streamed, [streamed]);
}

#[test]
fn a_stream_without_two_messages_has_no_gap() {
    let mut pair = of_file("protocol = \"grpc\"\n[[request]]\npath = \"/a/b\"\nstream = true\n");
    pair.now = 7;
    let mut out = Vec::new();
    for (asked, messages) in pair.asked(&mut out).iter().zip(0..) {
        stream(&vec![vec![]; messages]).write(asked.stream, &mut out);
    }
    pair.receive(&out, 1 << 16);
    let of = |i: usize| (pair.streamed[i].first_at, pair.streamed[i].longest_gap);
    assert_eq!((of(0), of(1), of(2)), ((None, None), (Some(7), None), (Some(7), Some(0))));
}

/// The start of a stream: so many messages.
fn begin(stream_id: u32, messages: usize, out: &mut Vec<u8>) {
    let (whole, content) = framed(&stream(&five()[..messages]), stream_id);
    let is_head = messages == 0;
    out.extend_from_slice(
        &whole[..if is_head { content - 9 } else { content + messages * FRAMED }],
    );
}

#[test]
fn a_reset_says_after_how_many_messages_and_nothing_is_counted() {
    for (code, name) in [(ErrorCode::NO_ERROR, "NO_ERROR"), (ErrorCode::CANCEL, "CANCEL")] {
        let mut pair = one_watch();
        let mut out = Vec::new();
        let asked = pair.asked(&mut out);
        begin(asked[0].stream, 3, &mut out);
        write::reset(&mut out, asked[0].stream, code);
        pair.receive(&out, 5);
        let Some(Unanswered::Ended(why)) = pair.unanswered() else { panic!("no reset") };
        let expected =
            format!("the server reset the stream with {name} (RST_STREAM; RFC 9113, 6.4)");
        assert_eq!(why, format!("{expected}, after 3 messages"));
        assert_eq!((pair.answered, pair.streamed.len()), (0, 0));
    }
}

#[test]
fn a_message_behind_the_trailers_is_found() {
    let mut pair = one_watch();
    let mut out = Vec::new();
    let asked = pair.asked(&mut out);
    right(&asked[0]).write(asked[0].stream, &mut out);
    write::data(&mut out, |_| (), (asked[0].stream, false), &[0; 5], 1 << 14);
    let wrong = pair.try_receive(&out, 7).unwrap_err();
    assert!(wrong.received.contains("DATA, flags 0x0, stream 1, 5 bytes"), "{wrong:?}");
}

/// A stream that has begun is not sent again: some of its messages have arrived (RFC 9113, 6.8).
#[test]
fn a_stream_that_was_partly_received_is_not_sent_again() {
    let mut pair = one_watch();
    let mut out = Vec::new();
    let asked = pair.asked(&mut out);
    right(&asked[0]).write(asked[0].stream, &mut out);
    begin(asked[1].stream, 2, &mut out);
    begin(asked[2].stream, 0, &mut out);
    write::go_away(&mut out, asked[0].stream, ErrorCode::NO_ERROR);
    pair.receive(&out, 5);
    let mut all = std::iter::from_fn(|| pair.unanswered());
    for messages in [", after 2 messages", ", after 0 messages"] {
        let Some(Unanswered::Ended(why)) = all.next() else { panic!("it is sent again") };
        assert!(why.ends_with(&format!("(GOAWAY; RFC 9113, 6.8){messages}")), "{why}");
    }
    assert!(all.all(|why| why == Unanswered::NotProcessed));
    assert_eq!((pair.answered, pair.streamed.len()), (1, 1));
}

/// A connection with a server that sends only what the windows permit. Messages of 16,379 bytes.
fn streams_of(messages: u32, window: u32, frame: usize) -> Pair<Reply> {
    let text = format!(
        "protocol = \"grpc\"\n[[request]]\npath = \"/a/b\"\nstream = true\nmessages = {messages}\n\
         expect_hex = \"{}\"\n",
        "78".repeat(16_379)
    );
    let mut pair = of_file(&text);
    pair.set_stream_window(window);
    let mut out = Vec::new();
    let stream_id = pair.asked(&mut out)[0].stream;
    begin(stream_id, 0, &mut out);
    let mut trailers = Vec::new();
    Answer { head: owned(OK), content: None, trailers: None, ..stream(&[]) }
        .write(stream_id, &mut trailers);
    pair.receive(&out, 1 << 16);
    let mut message = Vec::new();
    framing::write(&[b'x'; 16_379], &mut message);
    let mut left = u64::from(window);
    for _ in 0..messages {
        for piece in message.chunks(frame) {
            assert!(piece.len() as u64 <= left, "the load stalls");
            left -= piece.len() as u64;
            out.clear();
            write::data(&mut out, |_| (), (stream_id, false), piece, 1 << 14);
            pair.receive(&out, 1 << 16);
            let updates = pair.window_updates();
            left += updates.iter().map(|(_, more)| u64::from(*more)).sum::<u64>();
        }
    }
    pair.receive(&trailers, 1 << 16);
    pair
}

#[test]
fn the_window_of_a_stream_is_raised_in_time() {
    for (messages, window, frame) in
        [(70_000, 1 << 30, 1 << 14), (3, 1, 1), (20, 100, 50), (9, 65_535, 9_999)]
    {
        let pair = streams_of(messages, window, frame);
        assert_eq!((pair.answered, pair.streamed[0].messages), (1, u64::from(messages)));
    }
}

mod templates {
    use super::super::{
        super::{asks::GrpcCall, template::Template},
        ExpectedMessage, MessageStream,
    };

    /// The bytes of a message, found by asking for each byte.
    fn bytes(template: &Template, number: u64) -> Vec<u8> {
        let is_byte = |at: usize, byte: u8| template.difference(number, at, &[byte]).is_none();
        let length = template.length(number) as usize;
        (0..length).map(|at| (0..=255).find(|byte| is_byte(at, *byte)).unwrap()).collect()
    }

    fn of(text: &str, number: u64) -> Vec<u8> {
        bytes(&Template::parse(text).unwrap(), number)
    }

    #[test]
    fn numbers_are_encoded_as_protocol_buffers_do() {
        for (number, varint) in [
            (1, &[1][..]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (150, &[0x96, 1]),
            (300, &[0xac, 2]),
            (1 << 32, &[0x80, 0x80, 0x80, 0x80, 0x10]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            assert_eq!(of("08{n:varint}", number), [&[8], varint].concat(), "{number}");
        }
        assert_eq!(of("{n-1:varint}{n+3:varint}", 1), [0, 4]);
        assert_eq!(of("0d{n:fixed32}", 258), [0x0d, 2, 1, 0, 0]);
        assert_eq!(of("{n:fixed32}", (1 << 32) + 5), [5, 0, 0, 0]);
        assert_eq!(of("{n+4294967295:fixed64}ff", 1), [0, 0, 0, 0, 1, 0, 0, 0, 255]);
        assert!(of("", 3).is_empty());
    }

    #[test]
    fn every_difference_is_found_in_every_part() {
        let template = Template::parse("0a{n:varint}0b0c{n:fixed32}0d").unwrap();
        let whole = bytes(&template, 300);
        for from in 0..whole.len() {
            for until in from..=whole.len() {
                assert_eq!(template.difference(300, from, &whole[from..until]), None);
                for at in from..until {
                    let mut other = whole.clone();
                    other[at] ^= 1;
                    assert_eq!(template.difference(300, from, &other[from..until]), Some(at));
                }
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("08{n:varint", "{n:varint has no end; expected {n:varint}"),
            ("08{n}", "{n} is unknown"),
            ("08{n:int32}", "{n:int32} is unknown"),
            ("{n-2:varint}", "{n-2:varint} is unknown"),
            ("{n+4294967296:varint}", "is unknown; expected"),
            ("{n1:varint}", "is unknown"),
            ("{{n:varint}}", "is unknown"),
            ("0{n:varint}8", "1 hex digits"),
            ("08}", "'}' is not a hex digit"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let many = "{n:varint}".repeat(17);
        assert_eq!(Template::parse(&many).unwrap_err(), "17 placeholders; expected at most 16");
        assert!(Template::parse(&"00".repeat((4 << 20) + 1)).unwrap_err().contains("at most"));
    }

    fn hex(text: &str) -> Option<ExpectedMessage> {
        Some(ExpectedMessage::Hex(text.into()))
    }

    #[test]
    fn what_needs_a_stream_is_refused_without_one() {
        let of = |is_stream, messages, each| {
            GrpcCall::new("/a/b").expecting(is_stream, MessageStream { messages, each }, None)
        };
        let expected = |each| of(false, None, each).unwrap().expected;
        assert_eq!(expected(hex("0801")), Some(vec![8, 1]));
        assert_eq!(expected(hex("")), Some(vec![]));
        assert_eq!(expected(None), None);
        assert!(of(false, Some(3), None).is_err());
        assert!(of(false, None, hex("08{n:varint}")).is_err());
        assert!(of(false, None, hex("{n:varint}")).is_err());
        let call = of(true, Some(3), hex("0801")).unwrap();
        assert_eq!((call.expected, call.stream.unwrap().messages), (None, Some(3)));
    }

    #[test]
    fn a_stream_survives_a_message_to_another_process() {
        for text in ["", "0801", "0a{n:varint}{n-1:fixed32}ff{n+7:fixed64}", &"ab".repeat(500)] {
            let stream = MessageStream { messages: Some(7), each: hex(text) };
            let sent = serde_json::to_string(&stream).unwrap();
            assert_eq!(serde_json::from_str::<MessageStream>(&sent).unwrap(), stream, "{sent}");
        }
    }
}
