//! For each rule, what violates it. Connections and streams end with the code of the rule, whole and split
//! at every byte.

use crate::run::{
    Run, Seen, block, data, frame, frames, go_away, headers, reset, settings, window_update,
};
use regatta_http2::{
    ErrorCode, Rule, Scope,
    client::{Config, MAX_BLOCK, MAX_CONTINUATIONS, MAX_IDLE_FRAMES, MAX_INTERIM},
    frame::{Kind, flag},
};
use std::collections::BTreeSet;

/// Bytes of a server that violate a rule, after its SETTINGS. The client has these requests open: GET on
/// stream 1, HEAD on 3, POST with 10 bytes of content, which are not sent, on 5, and GET on 7. Stream 9 was
/// answered.
struct Case {
    rule: Rule,
    bytes: Vec<u8>,
    config: Config,
}

/// The stream whose violations are reported.
const STREAM: u32 = 1;

fn case(rule: Rule, parts: &[Vec<u8>]) -> Case {
    Case { rule, bytes: parts.concat(), config: Config::CLIENT }
}

fn ok(stream: u32) -> Vec<u8> {
    headers(stream, &[(":status", "200")], false)
}

/// A HEADERS frame on stream 1 with this field block.
fn coded(block: &[u8]) -> Vec<u8> {
    frame(Kind::HEADERS, flag::END_HEADERS, 1, block)
}

/// A response on stream 1 with this field behind its status.
fn with(name: &str, value: &str) -> Vec<u8> {
    headers(1, &[(":status", "200"), (name, value)], false)
}

fn frame_cases() -> Vec<Case> {
    use Rule::*;
    vec![
        case(FrameTooLarge, &[frame(Kind::DATA, 0, 1, &[0; 16_385])]),
        case(FrameTooLarge, &[frame(Kind(0x99), 0, 0, &[0; 16_385])]),
        case(FrameTooShort, &[frame(Kind::DATA, flag::PADDED, 1, b"")]),
        case(FrameTooShort, &[frame(Kind::HEADERS, flag::PADDED, 1, b"")]),
        case(FrameTooShort, &[frame(Kind::HEADERS, flag::PRIORITY, 1, &[0; 4])]),
        case(FrameTooShort, &[frame(Kind::GOAWAY, 0, 0, &[0; 7])]),
        case(PaddingTooLong, &[ok(1), frame(Kind::DATA, flag::PADDED, 1, b"\x03ab")]),
        case(PaddingTooLong, &[frame(Kind::HEADERS, flag::PADDED, 1, b"\x02\x88")]),
        case(DataOnConnection, &[data(0, b"a", false)]),
        case(HeadersOnConnection, &[ok(0)]),
        case(PriorityOnConnection, &[frame(Kind::PRIORITY, 0, 0, &[0; 5])]),
        case(PriorityLength, &[frame(Kind::PRIORITY, 0, 1, &[0; 4])]),
        case(PriorityLength, &[frame(Kind::PRIORITY, 0, 1, &[0; 6])]),
        case(ResetOnConnection, &[reset(0, ErrorCode::CANCEL)]),
        case(ResetLength, &[frame(Kind::RST_STREAM, 0, 1, &[0; 3])]),
        case(ResetLength, &[frame(Kind::RST_STREAM, 0, 1, &[0; 5])]),
        case(SettingsOnStream, &[frame(Kind::SETTINGS, 0, 1, b"")]),
        case(SettingsLength, &[frame(Kind::SETTINGS, 0, 0, &[0; 7])]),
        case(SettingsAckLength, &[frame(Kind::SETTINGS, flag::ACK, 0, &[0; 6])]),
        case(
            SettingsAckUnexpected,
            &[frame(Kind::SETTINGS, flag::ACK, 0, b""), frame(Kind::SETTINGS, flag::ACK, 0, b"")],
        ),
        case(PushEnabled, &[settings(&[(2, 1)])]),
        case(PushEnabled, &[settings(&[(2, 2)])]),
        case(WindowSettingTooLarge, &[settings(&[(4, 1 << 31)])]),
        case(FrameSizeSetting, &[settings(&[(5, (1 << 14) - 1)])]),
        case(FrameSizeSetting, &[settings(&[(5, 1 << 24)])]),
        case(Pushed, &[frame(Kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\0\0\0\x02\x82")]),
        case(PingOnStream, &[frame(Kind::PING, 0, 1, &[0; 8])]),
        case(PingLength, &[frame(Kind::PING, 0, 0, &[0; 7])]),
        case(GoAwayOnStream, &[frame(Kind::GOAWAY, 0, 1, &[0; 8])]),
        case(
            GoAwayIncreased,
            &[go_away(7, ErrorCode::NO_ERROR, b""), go_away(9, ErrorCode::NO_ERROR, b"")],
        ),
        case(WindowUpdateLength, &[frame(Kind::WINDOW_UPDATE, 0, 1, &[0; 3])]),
        case(ZeroIncrement, &[window_update(0, 0)]),
        case(ZeroStreamIncrement, &[window_update(1, 0)]),
        case(ZeroStreamIncrement, &[window_update(1, 1 << 31)]),
        case(BlockInterrupted, &[frame(Kind::HEADERS, 0, 1, b"\x88"), data(1, b"", true)]),
        case(
            BlockInterrupted,
            &[frame(Kind::HEADERS, 0, 1, b"\x88"), frame(Kind::CONTINUATION, 4, 7, b"")],
        ),
        case(
            BlockInterrupted,
            &[frame(Kind::HEADERS, 0, 1, b"\x88"), frame(Kind(0x99), 0, 1, b"")],
        ),
        case(ContinuationWithoutBlock, &[frame(Kind::CONTINUATION, 4, 1, b"\x88")]),
        case(ContinuationWithoutBlock, &[ok(1), frame(Kind::CONTINUATION, 4, 1, b"")]),
        case(ContinuationWithoutBlock, &[frame(Kind::CONTINUATION, 4, 0, b"")]),
    ]
}

fn stream_cases() -> Vec<Case> {
    use Rule::*;
    let small = Config { stream_window: 10, connection_window: 65_535, ..Config::CLIENT };
    vec![
        case(IdleStream, &[data(11, b"a", false)]),
        case(IdleStream, &[ok(2)]),
        case(IdleStream, &[ok(11)]),
        case(IdleStream, &[reset(11, ErrorCode::CANCEL)]),
        case(IdleStream, &[window_update(2, 1)]),
        case(ClosedStream, &[data(9, b"a", false)]),
        case(ClosedStream, &[ok(9)]),
        case(ClosedStream, &[reset(1, ErrorCode::CANCEL), ok(1)]),
        // Its request is not sent completely.
        case(ClosedStream, &[headers(5, &[(":status", "200")], true), data(5, b"a", false)]),
        case(ClosedStream, &[headers(5, &[(":status", "200")], true), ok(5)]),
        Case {
            rule: StreamWindowExceeded,
            bytes: [ok(1), data(1, &[0; 11], false)].concat(),
            config: small,
        },
        Case {
            rule: StreamWindowExceeded,
            bytes: [ok(1), frame(Kind::DATA, flag::PADDED, 1, &[9; 11])].concat(),
            config: small,
        },
        case(WindowOverflow, &[window_update(0, (1 << 31) - 1)]),
        case(StreamWindowOverflow, &[window_update(1, (1 << 31) - 1)]),
        case(
            WindowSettingOverflow,
            &[window_update(1, (1 << 31) - 1 - 65_535), settings(&[(4, 65_536)])],
        ),
    ]
}

fn block_cases() -> Vec<Case> {
    use Rule::*;
    vec![
        case(BlockTruncated, &[coded(&[0x48, 3, b'2', b'0'])]),
        case(BlockTruncated, &[coded(&[0x48])]),
        case(BlockTruncated, &[coded(&[0xff])]),
        case(BlockTruncated, &[coded(&[0x3f])]),
        case(IndexTooLarge, &[coded(&[0xbe])]),
        case(IndexTooLarge, &[coded(&[0x7f, 0, 0])]),
        case(TableSizeLate, &[coded(&[0x88, 0x20])]),
        case(IntegerTooLarge, &[coded(&[0xff, 0x80, 0x80, 0x80, 0x80, 0])]),
        case(HuffmanEnd, &[coded(&[0x48, 0x84, 0xff, 0xff, 0xff, 0xff])]),
        case(HuffmanPadding, &[coded(&[0x48, 0x81, 0b0000_0110])]),
        case(HuffmanPaddingTooLong, &[coded(&[0x48, 0x82, 0b0000_0111, 0xff])]),
        case(IndexZero, &[coded(&[0x80])]),
        case(TableSizeTooLarge, &[coded(&[0x3f, 0xe2, 0x1f, 0x88])]),
        Case {
            rule: TableSizeTooLarge,
            bytes: [frame(Kind::SETTINGS, flag::ACK, 0, b""), coded(&[0x3f, 0xe1, 0x1f])].concat(),
            config: Config { header_table: 100, ..Config::CLIENT },
        },
        Case {
            rule: TableSizeMissing,
            bytes: [frame(Kind::SETTINGS, flag::ACK, 0, b""), ok(1)].concat(),
            config: Config { header_table: 100, ..Config::CLIENT },
        },
    ]
}

fn message_cases() -> Vec<Case> {
    use Rule::*;
    let trailers = |fields: &[(&str, &str)]| headers(1, fields, true);
    vec![
        case(DataBeforeHead, &[data(1, b"a", false)]),
        case(DataBeforeHead, &[headers(1, &[(":status", "100")], false), data(1, b"", true)]),
        case(InterimEnds, &[headers(1, &[(":status", "103")], true)]),
        case(TrailersWithoutEnd, &[ok(1), headers(1, &[("a", "b")], false)]),
        case(TrailersWithoutEnd, &[ok(1), ok(1)]),
        case(PseudoInTrailers, &[ok(1), trailers(&[(":status", "200")])]),
        case(ContentLength, &[with("content-length", "2"), data(1, b"a", true)]),
        case(ContentLength, &[with("content-length", "2"), data(1, b"abc", false)]),
        case(ContentLength, &[with("content-length", "2"), data(1, b"a", false), trailers(&[])]),
        case(ContentLength, &[headers(1, &[(":status", "200"), ("content-length", "2")], true)]),
        case(ContentLengthValue, &[with("content-length", "+2")]),
        case(ContentLengthValue, &[with("content-length", "")]),
        case(ContentLengthValue, &[with("content-length", "99999999999999999999")]),
        case(
            ContentLengthValue,
            &[headers(
                1,
                &[(":status", "200"), ("content-length", "2"), ("content-length", "3")],
                false,
            )],
        ),
        case(UppercaseName, &[with("X-a", "b")]),
        case(FieldName, &[with("", "b")]),
        case(FieldName, &[with("a b", "c")]),
        case(FieldName, &[with("a:", "c")]),
        case(FieldName, &[with("a\x7f", "c")]),
        case(FieldName, &[with("a\x1f", "c")]),
        case(FieldName, &[with("\u{e9}", "c")]),
        case(FieldName, &[ok(1), trailers(&[("a\0", "c")])]),
        case(FieldValue, &[with("a", "b\r\nc: d")]),
        case(FieldValue, &[with("a", "b\0")]),
        case(FieldValue, &[with("a", " b")]),
        case(FieldValue, &[with("a", "b\t")]),
        case(ConnectionField, &[with("connection", "close")]),
        case(ConnectionField, &[with("transfer-encoding", "chunked")]),
        case(ConnectionField, &[with("keep-alive", "5")]),
        case(ConnectionField, &[with("proxy-connection", "a")]),
        case(ConnectionField, &[with("upgrade", "h2c")]),
        case(ConnectionField, &[with("te", "gzip")]),
        case(PseudoUnknown, &[with(":path", "/")]),
        case(PseudoLate, &[headers(1, &[("a", "b"), (":status", "200")], false)]),
        case(StatusRepeated, &[with(":status", "200")]),
        case(StatusMissing, &[headers(1, &[("a", "b")], false)]),
        case(StatusMissing, &[coded(b"")]),
        case(StatusValue, &[headers(1, &[(":status", "20")], false)]),
        case(StatusValue, &[headers(1, &[(":status", "099")], false)]),
        case(StatusValue, &[headers(1, &[(":status", "600")], false)]),
        case(StatusValue, &[headers(1, &[(":status", "2x0")], false)]),
        case(StatusSwitching, &[headers(1, &[(":status", "101")], false)]),
        case(ContentForbidden, &[headers(3, &[(":status", "200")], false), data(3, b"a", true)]),
        case(ContentForbidden, &[headers(1, &[(":status", "204")], false), data(1, b"a", true)]),
        case(ContentForbidden, &[headers(1, &[(":status", "304")], false), data(1, b"a", true)]),
    ]
}

fn limit_cases() -> Vec<Case> {
    use Rule::*;
    let start = frame(Kind::HEADERS, 0, 1, b"");
    let most = MAX_IDLE_FRAMES as usize;
    let flood = |bytes: Vec<u8>| bytes.repeat(most + 1);
    let long = "x".repeat(200);
    vec![
        case(
            BlockTooLarge,
            &[
                start.clone(),
                frame(Kind::CONTINUATION, 0, 1, &[0x88; 16_384]).repeat(MAX_BLOCK / 16_384),
                frame(Kind::CONTINUATION, 4, 1, &[0x88]),
            ],
        ),
        case(
            TooManyContinuations,
            &[start, frame(Kind::CONTINUATION, 0, 1, b"").repeat(MAX_CONTINUATIONS as usize + 1)],
        ),
        case(TooManyIdleFrames, &[flood(settings(&[]))]),
        case(TooManyIdleFrames, &[flood(frame(Kind::PING, 0, 0, &[0; 8]))]),
        case(TooManyIdleFrames, &[flood(frame(Kind::PRIORITY, 0, 1, &[0; 5]))]),
        case(TooManyIdleFrames, &[flood(frame(Kind(0x99), 0, 1, b""))]),
        case(TooManyIdleFrames, &[flood(window_update(0, 1))]),
        case(TooManyIdleFrames, &[flood(reset(9, ErrorCode::CANCEL))]),
        case(TooManyIdleFrames, &[flood(go_away(99, ErrorCode::NO_ERROR, b""))]),
        case(TooManyIdleFrames, &[ok(1), flood(data(1, b"", false))]),
        // The first one precedes its head, so the client resets the stream.
        case(TooManyIdleFrames, &[flood(data(1, b"a", true))]),
        case(TooManyIdleFrames, &[ok(1), flood(frame(Kind::DATA, flag::PADDED, 1, b"\x01\0"))]),
        Case {
            rule: FieldsTooLarge,
            bytes: with("x", &long),
            config: Config { header_list: 200, ..Config::CLIENT },
        },
        Case {
            rule: FieldsTooLarge,
            // Each byte is a field of 42 bytes.
            bytes: coded(&[0x88; 1000]),
            config: Config { header_list: 41_999, ..Config::CLIENT },
        },
        case(
            TooManyInterim,
            &[headers(1, &[(":status", "103")], false).repeat(usize::from(MAX_INTERIM) + 1)],
        ),
    ]
}

fn cases() -> Vec<Case> {
    let all = [frame_cases(), stream_cases(), block_cases(), message_cases(), limit_cases()];
    all.into_iter().flatten().collect()
}

/// What the client reports and sends, when its input comes in these pieces.
fn served<'a>(config: Config, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Seen>, Vec<u8>) {
    let mut run = Run::new(config);
    run.feed(&settings(&[]));
    for (is_head, content) in [(false, 0), (true, 0), (false, 10), (false, 0), (false, 0)] {
        run.start(is_head, content);
    }
    run.feed(&headers(9, &[(":status", "200")], true));
    run.take();
    run.out.clear();
    pieces.for_each(|piece| run.feed(piece));
    (run.take(), run.out)
}

/// A connection that continues answers this.
fn ping() -> Vec<u8> {
    frame(Kind::PING, 0, 0, b"continue")
}

/// The rules that only clients can violate, and the first one of servers.
const OF_CLIENTS: [Rule; 12] = [
    Rule::HalfClosedStream,
    Rule::SettingsMissing,
    Rule::PrefaceInvalid,
    Rule::PushSetting,
    Rule::StreamOrder,
    Rule::TooManyStreams,
    Rule::PseudoRepeated,
    Rule::PseudoMissing,
    Rule::PathValue,
    Rule::HostDiffers,
    Rule::ConnectFields,
    Rule::TooManyResets,
];

#[test]
fn every_rule_is_violated_by_a_case_and_each_has_a_section() {
    let found: BTreeSet<Rule> = cases().iter().map(|case| case.rule).collect();
    let missing: BTreeSet<Rule> =
        Rule::ALL.iter().copied().filter(|rule| !found.contains(rule)).collect();
    // Those of clients, and the only one that precedes the settings; below.
    assert_eq!(missing, BTreeSet::from(OF_CLIENTS));
    for rule in Rule::ALL {
        assert!(rule.section().starts_with("RFC "), "{rule}");
        assert!(rule.code().name().is_some() && rule.why().ends_with('.'), "{rule}");
    }
    let shown =
        "The payload of a PING frame is not 8 bytes long. (FRAME_SIZE_ERROR, RFC 9113, 6.7)";
    assert_eq!(Rule::PingLength.to_string(), shown);
}

#[test]
fn each_ends_its_stream_or_connection_with_its_code() {
    for Case { rule, bytes, config } in cases() {
        let (seen, out) = served(config, [&bytes[..], &ping()].into_iter());
        let frames = frames(&out);
        let name = format!("{rule:?} {:?}", bytes.get(..40).unwrap_or(&bytes));
        match rule.scope() {
            Scope::Connection => {
                assert_eq!(seen.last(), Some(&Seen::Failed(rule)), "{name}");
                let (header, payload) = frames.last().expect("GOAWAY");
                assert_eq!(header.kind, Kind::GOAWAY, "{name}");
                assert_eq!(payload[4..], rule.code().0.to_be_bytes(), "{name}");
            }
            Scope::Stream => {
                let wrong = |seen: &&Seen| matches!(seen, Seen::Wrong(_, other) if *other == rule);
                let Some(Seen::Wrong(stream, _)) = seen.iter().find(wrong) else {
                    panic!("{name}: {seen:?}");
                };
                assert_eq!(seen.iter().filter(|s| matches!(s, Seen::Wrong(..))).count(), 1);
                assert!([STREAM, 3, 5].contains(stream), "{name}");
                let resets: Vec<_> =
                    frames.iter().filter(|(header, _)| header.kind == Kind::RST_STREAM).collect();
                assert_eq!(resets.len(), 1, "{name}");
                assert_eq!(
                    (resets[0].0.stream, &resets[0].1[..]),
                    (*stream, &rule.code().0.to_be_bytes()[..]),
                    "{name}"
                );
                let (header, payload) = frames.last().expect("the answer to PING");
                assert_eq!((header.kind, &payload[..]), (Kind::PING, &b"continue"[..]), "{name}");
            }
        }
    }
}

#[test]
fn each_is_the_same_at_every_split() {
    for Case { rule, bytes, config } in cases() {
        let all = [bytes, ping()].concat();
        let whole = served(config, std::iter::once(&all[..]));
        // A flood has too many bytes to be split at all of them.
        let step = all.len().div_ceil(if all.len() < 10_000 { 300 } else { 20 });
        for cut in (0..all.len()).step_by(step) {
            let (now, later) = all.split_at(cut);
            assert_eq!(served(config, [now, later].into_iter()), whole, "{rule:?} cut at {cut}");
        }
        if all.len() < 2000 {
            assert_eq!(served(config, all.chunks(1)), whole, "{rule:?}");
        }
    }
}

#[test]
fn the_first_frame_must_be_settings() {
    for bytes in [
        frame(Kind::PING, 0, 0, &[0; 8]),
        frame(Kind::SETTINGS, flag::ACK, 0, b""),
        frame(Kind(0x99), 0, 0, b""),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    ] {
        let mut run = Run::new(Config::CLIENT);
        run.feed(&bytes);
        assert_eq!(run.take(), [Seen::Failed(Rule::SettingsMissing)]);
    }
}

#[test]
fn an_error_of_a_stream_that_is_not_open_ends_the_connection() {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[]));
    run.take();
    run.feed(&frame(Kind::PRIORITY, 0, 1, &[0; 4]));
    assert_eq!(run.take(), [Seen::Failed(Rule::PriorityLength)]);
}

#[test]
fn each_limit_is_reached_without_an_error() {
    // `:status: 200`, and 999 times `accept-encoding: gzip, deflate`.
    let mut run = Run::new(Config { header_list: 42 + 999 * 60, ..Config::CLIENT });
    run.feed(&settings(&[]));
    run.start(false, 0);
    run.start(false, 0);
    run.feed(&frame(Kind::PING, 0, 0, &[0; 8]).repeat(MAX_IDLE_FRAMES as usize - 1));
    run.feed(&headers(1, &[(":status", "103")], false).repeat(usize::from(MAX_INTERIM)));
    // A request made progress, which allows as many frames again.
    run.feed(&frame(Kind::PING, 0, 0, &[0; 8]).repeat(MAX_IDLE_FRAMES as usize));
    run.feed(&frame(Kind::HEADERS, 0, 1, &block(&[(":status", "200")])));
    run.feed(&frame(Kind::CONTINUATION, 0, 1, b"").repeat(MAX_CONTINUATIONS as usize - 1));
    run.feed(&frame(Kind::CONTINUATION, flag::END_HEADERS, 1, &[0x90; 999]));
    // The longest block has size updates, and a field in its last byte.
    let updates = [0x20; MAX_BLOCK / 4];
    let mut last = updates;
    last[updates.len() - 1] = 0x88;
    run.feed(&frame(Kind::HEADERS, flag::END_STREAM, 3, &updates));
    run.feed(&frame(Kind::CONTINUATION, 0, 3, &updates).repeat(2));
    run.feed(&frame(Kind::CONTINUATION, flag::END_HEADERS, 3, &last));
    let seen = run.take();
    let heads = seen.iter().filter(|seen| matches!(seen, Seen::Head(..))).count();
    assert_eq!((heads, seen.len()), (2, 1 + usize::from(MAX_INTERIM) + 2));
    assert_eq!(run.client.open_streams(), 1);
}
