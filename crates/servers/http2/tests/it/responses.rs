//! Valid responses, and what the client answers.

use crate::run::{Run, Seen, block, data, frame, headers, reset, settings, text};
use regatta_http2::{
    ErrorCode,
    client::{Config, Event, NotStarted, Prepared, Request},
    frame::{Header, Kind, flag, write::PREFACE},
    hpack::{Encoder, Indexing},
};

/// A client with the server's settings and this many requests without content, on streams 1, 3, 5 …
fn run(requests: u32) -> Run {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[]));
    assert_eq!(run.take(), [Seen::Settings]);
    assert_eq!(run.frames().len(), 1, "the acknowledgment");
    (0..requests).for_each(|_| {
        run.start(false, 0);
    });
    run
}

fn head(stream: u32, fields: &str, ends: bool) -> Seen {
    Seen::Head(stream, fields.to_owned(), ends)
}

#[test]
fn a_connection_starts_with_preface_settings_and_window() {
    let mut out = Vec::new();
    let config = Config { connection_window: 100_000, ..Config::CLIENT };
    regatta_http2::client::Client::new(config).unwrap().open(&mut out);
    let rest = out.strip_prefix(PREFACE).unwrap();
    let frames = crate::run::frames(rest);
    let kinds: Vec<(Kind, u32)> = frames.iter().map(|(h, _)| (h.kind, h.length)).collect();
    assert_eq!(kinds, [(Kind::SETTINGS, 24), (Kind::WINDOW_UPDATE, 4)]);
    assert_eq!(frames[0].1[6..12], [0, 2, 0, 0, 0, 0], "push is disabled");
    assert_eq!(frames[1].1, (100_000 - 65_535_u32).to_be_bytes());
}

#[test]
fn settings_and_pings_are_answered_and_acknowledgments_are_not() {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[(3, 7), (0xabcd, 9)]));
    assert_eq!(run.client.peer().max_concurrent_streams, 7);
    assert!(!run.client.is_settled());
    run.feed(&frame(Kind::SETTINGS, flag::ACK, 0, b""));
    assert!(run.client.is_settled());
    run.feed(&frame(Kind::PING, 0, 0, b"12345678"));
    run.feed(&frame(Kind::PING, flag::ACK, 0, b"12345678"));
    let header = |kind, length| Header { length, kind, flags: flag::ACK, stream: 0 };
    let expected =
        [(header(Kind::SETTINGS, 0), Vec::new()), (header(Kind::PING, 8), b"12345678".to_vec())];
    assert_eq!(run.frames(), expected);
}

#[test]
fn responses_of_several_streams_are_read_in_any_order() {
    let mut run = run(3);
    run.feed(&headers(5, &[(":status", "200"), ("content-length", "4")], false));
    run.feed(&headers(1, &[(":status", "404")], true));
    run.feed(&data(5, b"ab", false));
    run.feed(&headers(3, &[(":status", "200")], false));
    run.feed(&data(3, b"", true));
    run.feed(&data(5, b"cd", true));
    let expected = [
        head(5, ":status=200 content-length=4", false),
        head(1, ":status=404", true),
        Seen::Content(5, b"ab".to_vec(), false),
        head(3, ":status=200", false),
        Seen::Content(3, Vec::new(), true),
        Seen::Content(5, b"cd".to_vec(), true),
    ];
    assert_eq!(run.take(), expected);
    assert_eq!(run.client.open_streams(), 0);
    assert_eq!(run.frames(), []);
}

#[test]
fn interim_responses_and_trailers_are_reported() {
    let mut run = run(1);
    run.feed(&headers(1, &[(":status", "100")], false));
    run.feed(&headers(1, &[(":status", "103"), ("link", "a")], false));
    run.feed(&headers(1, &[(":status", "200")], false));
    run.feed(&data(1, b"a", false));
    run.feed(&headers(1, &[("grpc-status", "0"), ("te", "trailers")], true));
    let expected = [
        Seen::Interim(1, 100),
        Seen::Interim(1, 103),
        head(1, ":status=200", false),
        Seen::Content(1, b"a".to_vec(), false),
        Seen::Trailers(1, "grpc-status=0 te=trailers".to_owned()),
    ];
    assert_eq!(run.take(), expected);
}

#[test]
fn padding_priority_and_unknown_frames_are_ignored() {
    let mut run = run(2);
    let fields = block(&[(":status", "200")]);
    let payload = [&[3][..], &[0, 0, 0, 0, 9], &fields, &[0; 3]].concat();
    let flags = flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
    run.feed(&frame(Kind::HEADERS, flags, 1, &payload));
    run.feed(&frame(Kind::PRIORITY, 0, 1, &[0; 5]));
    run.feed(&frame(Kind::PRIORITY, 0, 99, &[0; 5]));
    run.feed(&frame(Kind(0x42), 0xff, 77, b"anything"));
    run.feed(&frame(Kind::DATA, flag::PADDED, 1, b"\x02abc\0\0"));
    // Nothing but padding.
    run.feed(&frame(Kind::DATA, flag::PADDED, 1, b"\x02\0\0"));
    run.feed(&frame(Kind::DATA, flag::PADDED, 1, b"\x00"));
    run.feed(&frame(Kind::DATA, flag::PADDED | flag::END_STREAM, 1, b"\x01d\0"));
    let seen = run.take();
    assert_eq!(seen, [head(1, ":status=200", false), Seen::Content(1, b"abcd".to_vec(), true)]);
}

#[test]
fn a_field_block_may_have_many_frames_even_empty_ones() {
    let mut run = run(1);
    let fields = block(&[(":status", "200"), ("x-name", "a value")]);
    run.feed(&frame(Kind::HEADERS, flag::END_STREAM, 1, b""));
    for byte in &fields {
        run.feed(&frame(Kind::CONTINUATION, 0, 1, &[*byte]));
    }
    assert_eq!(run.take(), []);
    run.feed(&frame(Kind::CONTINUATION, flag::END_HEADERS, 1, b""));
    assert_eq!(run.take(), [head(1, ":status=200 x-name=a value", true)]);
}

#[test]
fn responses_without_content_may_declare_a_length() {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[]));
    for is_head in [true, false, false] {
        run.start(is_head, 0);
    }
    run.feed(&headers(1, &[(":status", "200"), ("content-length", "9")], true));
    run.feed(&headers(3, &[(":status", "304"), ("content-length", "9")], true));
    run.feed(&headers(5, &[(":status", "204")], false));
    run.feed(&data(5, b"", true));
    assert!(!run.take().iter().any(|seen| matches!(seen, Seen::Wrong(..))));
    assert_eq!(run.client.open_streams(), 0);
}

/// The fields of a repeated head come from memory: they must be those of its block under the present table.
#[test]
fn a_repeated_head_is_recognized_and_one_under_another_table_is_not() {
    let mut run = run(6);
    let mut encoder = Encoder::default();
    let mut encode = |name: &str, value: &str| {
        let mut out = Vec::new();
        let fields = [(":status", "200"), (name, value)]
            .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Incremental));
        encoder.encode(fields, &mut out);
        out
    };
    let (first, again) = (encode("x", "1"), encode("x", "1"));
    let (second, newest) = (encode("x", "2"), encode("x", "2"));
    assert_eq!(again, newest, "the same bytes, but other fields");
    let mut seen = Vec::new();
    for (nth, block) in [&first, &again, &again, &second, &newest, &newest].into_iter().enumerate()
    {
        let flags = flag::END_HEADERS | flag::END_STREAM;
        let bytes = frame(Kind::HEADERS, flags, 2 * nth as u32 + 1, block);
        let Ok(Some(Event::Head { head, .. })) = run.client.next(&mut &bytes[..], &mut run.out)
        else {
            panic!("expected a head");
        };
        seen.push((text(head.fields), head.is_repeated));
    }
    let (one, two) = (":status=200 x=1".to_owned(), ":status=200 x=2".to_owned());
    let expected = [
        (one.clone(), false),
        (one.clone(), false),
        (one, true),
        (two.clone(), false),
        (two.clone(), false),
        (two, true),
    ];
    assert_eq!(seen, expected);
}

/// Trailers and heads have memories of their own, but share the table.
#[test]
fn a_head_is_not_repeated_after_trailers_that_change_the_table() {
    let mut run = run(3);
    let mut encoder = Encoder::default();
    let mut encode = |fields: &[(&str, &str)]| {
        let mut out = Vec::new();
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Incremental));
        encoder.encode(fields, &mut out);
        out
    };
    let inserting = encode(&[(":status", "200"), ("x", "1")]);
    let one = encode(&[(":status", "200"), ("x", "1")]);
    let trailers = encode(&[("x", "2")]);
    let two = encode(&[(":status", "200"), ("x", "2")]);
    assert_eq!(one, two, "the same bytes, but other fields");
    let ends = flag::END_HEADERS | flag::END_STREAM;
    run.feed(&frame(Kind::HEADERS, ends, 1, &inserting));
    run.feed(&frame(Kind::HEADERS, flag::END_HEADERS, 3, &one));
    run.feed(&frame(Kind::HEADERS, ends, 3, &trailers));
    run.feed(&frame(Kind::HEADERS, ends, 5, &two));
    let expected = [
        head(1, ":status=200 x=1", true),
        head(3, ":status=200 x=1", false),
        Seen::Trailers(3, "x=2".to_owned()),
        head(5, ":status=200 x=2", true),
    ];
    assert_eq!(run.take(), expected);
}

#[test]
fn a_reset_stream_is_reported_and_later_frames_on_it_are_not_permitted() {
    let mut run = run(2);
    run.feed(&reset(1, ErrorCode::REFUSED_STREAM));
    assert_eq!(run.take(), [Seen::Reset(1, ErrorCode::REFUSED_STREAM)]);
    // Permitted for a short time (RFC 9113, 5.1).
    run.feed(&reset(1, ErrorCode::NO_ERROR));
    run.feed(&crate::run::window_update(1, 5));
    assert_eq!(run.take(), []);
    run.feed(&data(1, b"a", false));
    assert_eq!(run.take(), [Seen::Failed(regatta_http2::Rule::ClosedStream)]);
}

#[test]
fn frames_on_a_cancelled_stream_are_discarded_but_change_the_table() {
    let mut run = run(2);
    assert!(run.client.cancel(1, ErrorCode::CANCEL, &mut run.out));
    assert!(!run.client.cancel(1, ErrorCode::CANCEL, &mut run.out));
    assert_eq!(run.frames()[0].1, ErrorCode::CANCEL.0.to_be_bytes());
    let mut encoder = Encoder::default();
    let fields = [(&b":status"[..], &b"299"[..], Indexing::Incremental)];
    let (mut inserts, mut refers) = (Vec::new(), Vec::new());
    encoder.encode(fields, &mut inserts);
    encoder.encode(fields, &mut refers);
    run.feed(&frame(Kind::HEADERS, flag::END_HEADERS, 1, &inserts));
    run.feed(&data(1, b"discarded", true));
    run.feed(&frame(Kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, &refers));
    assert_eq!(run.take(), [head(3, ":status=299", true)]);
}

#[test]
fn a_stream_that_is_cancelled_inside_a_frame_is_not_reported_further() {
    let mut run = run(2);
    let bytes = [headers(1, &[(":status", "200")], false), data(1, b"abcdef", true)].concat();
    let (now, later) = bytes.split_at(bytes.len() - 3);
    run.feed(now);
    assert_eq!(run.take()[1], Seen::Content(1, b"abc".to_vec(), false));
    run.client.cancel(1, ErrorCode::CANCEL, &mut run.out);
    run.feed(later);
    run.feed(&headers(3, &[(":status", "200")], true));
    assert_eq!(run.take(), [head(3, ":status=200", true)]);
}

#[test]
fn a_response_may_precede_the_end_of_its_request() {
    let mut run = run(0);
    let id = run.start(false, 10);
    assert_eq!(run.client.claim(id, 4), 4);
    run.feed(&headers(1, &[(":status", "413")], true));
    assert_eq!(run.take(), [head(1, ":status=413", true)]);
    assert_eq!(run.frames()[0].1, ErrorCode::NO_ERROR.0.to_be_bytes());
    assert_eq!((run.client.open_streams(), run.client.claim(id, 6)), (0, 0));
    // What the server sent before it knew of that says nothing.
    run.feed(&reset(1, ErrorCode::CANCEL));
    run.feed(&crate::run::window_update(1, 5));
    assert_eq!(run.take(), []);
    run.feed(&data(1, b"a", true));
    assert_eq!(run.take(), [Seen::Failed(regatta_http2::Rule::ClosedStream)]);
}

#[test]
fn a_response_behind_all_content_of_its_request_resets_nothing() {
    let mut run = run(0);
    let id = run.start(false, 10);
    assert_eq!(run.client.claim(id, 10), 10);
    run.feed(&headers(1, &[(":status", "200")], true));
    assert_eq!((run.client.open_streams(), run.frames().len()), (0, 0));
}

#[test]
fn no_more_streams_are_opened_than_both_ends_permit() {
    let mut run = Run::new(Config { max_streams: 3, ..Config::CLIENT });
    let request = Request { place: 1001, is_head: false, content: 0 };
    assert_eq!(run.client.start(request), Ok(1), "before the server's settings");
    run.feed(&settings(&[(3, 2)]));
    assert_eq!(run.client.room(0), 1);
    run.start(false, 0);
    assert_eq!((run.client.room(0), run.client.start(request)), (0, Err(NotStarted::TooMany)));
    run.feed(&settings(&[(3, 100)]));
    assert_eq!(run.client.room(0), 1);
    run.start(false, 0);
    run.feed(&settings(&[(3, 0)]));
    assert_eq!((run.client.room(0), run.client.start(request)), (0, Err(NotStarted::TooMany)));
    let mut pending: Vec<u32> = run.client.pending().map(|stream| stream.id).collect();
    pending.sort_unstable();
    assert_eq!(pending, [1, 3, 5]);
}

#[test]
fn a_compiled_request_has_the_stream_of_its_start() {
    let mut run = run(1);
    let prepared = Prepared::new(&block(&[(":method", "GET")]), b"abc", 16_384);
    let id = run.start(false, prepared.content());
    assert_eq!(run.client.claim(id, 3), 3);
    prepared.write(id, &mut run.out);
    let frames = run.frames();
    assert_eq!(frames.iter().map(|(header, _)| header.stream).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(frames[1].1, b"abc");
    assert!(frames[1].0.has(flag::END_STREAM) && !frames[0].0.has(flag::END_STREAM));
}
