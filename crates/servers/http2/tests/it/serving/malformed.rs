//! For each rule, what violates it. Connections and streams end with the code of the rule, whole and split
//! at every byte.

use super::run::{Run, Seen, fields, request};
use crate::run::{block, data, frame, frames, go_away, headers, reset, settings, window_update};
use regatta_http2::{
    ErrorCode, Rule, Scope,
    frame::{Kind, flag, write},
    server::{Config, MAX_BLOCK, MAX_CONTINUATIONS, MAX_IDLE_FRAMES, MAX_RESETS},
};
use std::collections::BTreeSet;

/// Bytes of a client that violate a rule, after its preface, SETTINGS and acknowledgment. It has these
/// streams: POST without its content on 1; GET that is not answered on 3; 5 was answered; 7 was skipped; and
/// 9 was reset by the server.
struct Case {
    rule: Rule,
    bytes: Vec<u8>,
    config: Config,
}

fn case(rule: Rule, parts: &[Vec<u8>]) -> Case {
    Case { rule, bytes: parts.concat(), config: Config::SERVER }
}

/// A HEADERS frame on stream 11 with this field block.
fn coded(block: &[u8]) -> Vec<u8> {
    frame(Kind::HEADERS, flag::END_HEADERS, 11, block)
}

/// A request on stream 11 with this field behind its others.
fn with(name: &str, value: &str) -> Vec<u8> {
    headers(11, &[&fields("POST", "/")[..], &[(name, value)]].concat(), false)
}

fn frame_cases() -> Vec<Case> {
    use Rule::*;
    let start = || frame(Kind::HEADERS, 0, 11, b"\x82");
    vec![
        case(FrameTooLarge, &[frame(Kind::DATA, 0, 1, &[0; 16_385])]),
        case(FrameTooShort, &[frame(Kind::DATA, flag::PADDED, 1, b"")]),
        case(FrameTooShort, &[frame(Kind::HEADERS, flag::PADDED, 11, b"")]),
        case(FrameTooShort, &[frame(Kind::HEADERS, flag::PRIORITY, 11, &[0; 4])]),
        case(FrameTooShort, &[frame(Kind::GOAWAY, 0, 0, &[0; 7])]),
        case(PaddingTooLong, &[frame(Kind::DATA, flag::PADDED, 1, b"\x03ab")]),
        case(PaddingTooLong, &[frame(Kind::HEADERS, flag::PADDED, 11, b"\x02\x82")]),
        case(DataOnConnection, &[data(0, b"a", false)]),
        case(HeadersOnConnection, &[request(0, "GET", true)]),
        case(PriorityOnConnection, &[frame(Kind::PRIORITY, 0, 0, &[0; 5])]),
        case(PriorityLength, &[frame(Kind::PRIORITY, 0, 1, &[0; 4])]),
        case(ResetOnConnection, &[reset(0, ErrorCode::CANCEL)]),
        case(ResetLength, &[frame(Kind::RST_STREAM, 0, 1, &[0; 3])]),
        case(SettingsOnStream, &[frame(Kind::SETTINGS, 0, 1, b"")]),
        case(SettingsLength, &[frame(Kind::SETTINGS, 0, 0, &[0; 7])]),
        case(SettingsAckLength, &[frame(Kind::SETTINGS, flag::ACK, 0, &[0; 6])]),
        case(SettingsAckUnexpected, &[frame(Kind::SETTINGS, flag::ACK, 0, b"")]),
        case(PushSetting, &[settings(&[(2, 2)])]),
        case(WindowSettingTooLarge, &[settings(&[(4, 1 << 31)])]),
        case(FrameSizeSetting, &[settings(&[(5, (1 << 14) - 1)])]),
        case(FrameSizeSetting, &[settings(&[(5, 1 << 24)])]),
        case(Pushed, &[frame(Kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\0\0\0\x02\x82")]),
        case(PingOnStream, &[frame(Kind::PING, 0, 1, &[0; 8])]),
        case(PingLength, &[frame(Kind::PING, 0, 0, &[0; 7])]),
        case(GoAwayOnStream, &[frame(Kind::GOAWAY, 0, 1, &[0; 8])]),
        case(WindowUpdateLength, &[frame(Kind::WINDOW_UPDATE, 0, 1, &[0; 3])]),
        case(ZeroIncrement, &[window_update(0, 0)]),
        case(ZeroStreamIncrement, &[window_update(1, 1 << 31)]),
        case(ZeroStreamIncrement, &[window_update(3, 0)]),
        case(BlockInterrupted, &[start(), data(1, b"", true)]),
        case(BlockInterrupted, &[start(), frame(Kind::CONTINUATION, 4, 3, b"")]),
        case(BlockInterrupted, &[start(), frame(Kind(0x99), 0, 11, b"")]),
        case(ContinuationWithoutBlock, &[frame(Kind::CONTINUATION, 4, 1, b"\x88")]),
        case(ContinuationWithoutBlock, &[frame(Kind::CONTINUATION, 4, 0, b"")]),
    ]
}

fn stream_cases() -> Vec<Case> {
    use Rule::*;
    let small = Config { stream_window: 10, ..Config::SERVER };
    let few = Config { max_streams: 3, ..Config::SERVER };
    vec![
        case(IdleStream, &[data(11, b"a", false)]),
        case(IdleStream, &[data(2, b"a", false)]),
        case(IdleStream, &[reset(11, ErrorCode::CANCEL)]),
        case(IdleStream, &[window_update(2, 1)]),
        case(StreamOrder, &[request(2, "GET", true)]),
        case(StreamOrder, &[request(7, "GET", true)]),
        case(ClosedStream, &[data(5, b"a", false)]),
        case(ClosedStream, &[request(5, "GET", true)]),
        case(ClosedStream, &[reset(1, ErrorCode::CANCEL), data(1, b"a", false)]),
        case(HalfClosedStream, &[data(3, b"a", false)]),
        case(HalfClosedStream, &[headers(3, &[("a", "b")], true)]),
        Case {
            rule: TooManyStreams,
            bytes: [request(11, "GET", true), request(13, "GET", true)].concat(),
            config: few,
        },
        Case { rule: StreamWindowExceeded, bytes: data(1, &[0; 11], false), config: small },
        Case {
            rule: StreamWindowExceeded,
            bytes: frame(Kind::DATA, flag::PADDED, 1, &[9; 11]),
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
    let small = Config { header_table: 100, ..Config::SERVER };
    vec![
        case(BlockTruncated, &[coded(&[0x41, 3, b'2', b'0'])]),
        case(IndexTooLarge, &[coded(&[0xbe])]),
        case(TableSizeLate, &[coded(&[0x82, 0x20])]),
        case(IntegerTooLarge, &[coded(&[0xff, 0x80, 0x80, 0x80, 0x80, 0])]),
        case(HuffmanEnd, &[coded(&[0x41, 0x84, 0xff, 0xff, 0xff, 0xff])]),
        case(HuffmanPadding, &[coded(&[0x41, 0x81, 0b0000_0110])]),
        case(HuffmanPaddingTooLong, &[coded(&[0x41, 0x82, 0b0000_0111, 0xff])]),
        case(IndexZero, &[coded(&[0x80])]),
        // Also in trailers, and on a stream that was reset.
        case(IndexZero, &[frame(Kind::HEADERS, 5, 1, &[0x80])]),
        case(IndexZero, &[frame(Kind::HEADERS, 5, 9, &[0x80])]),
        case(TableSizeTooLarge, &[coded(&[0x3f, 0xe2, 0x1f, 0x82])]),
        Case { rule: TableSizeMissing, bytes: request(11, "GET", true), config: small },
    ]
}

fn message_cases() -> Vec<Case> {
    use Rule::*;
    let head = |all: &[(&str, &str)]| headers(11, all, false);
    let trailers = |all: &[(&str, &str)]| headers(1, all, true);
    let plain = fields("POST", "/");
    vec![
        case(TrailersWithoutEnd, &[headers(1, &[("a", "b")], false)]),
        case(PseudoInTrailers, &[trailers(&[(":path", "/")])]),
        case(FieldName, &[trailers(&[("a\0", "c")])]),
        case(ContentLength, &[with("content-length", "2"), data(11, b"a", true)]),
        case(ContentLength, &[with("content-length", "2"), data(11, b"abc", false)]),
        case(
            ContentLength,
            &[with("content-length", "2"), data(11, b"a", false), headers(11, &[], true)],
        ),
        case(
            ContentLength,
            &[headers(11, &[&plain[..], &[("content-length", "1")]].concat(), true)],
        ),
        case(ContentLengthValue, &[with("content-length", "+2")]),
        case(
            ContentLengthValue,
            &[head(&[&plain[..], &[("content-length", "2"), ("content-length", "3")]].concat())],
        ),
        case(UppercaseName, &[with("X-a", "b")]),
        case(FieldName, &[with("", "b")]),
        case(FieldName, &[with("a b", "c")]),
        case(FieldValue, &[with("a", "b\r\nc: d")]),
        case(FieldValue, &[head(&[(":method", "GE\nT"), plain[1], plain[2]])]),
        case(ConnectionField, &[with("connection", "close")]),
        case(ConnectionField, &[with("transfer-encoding", "chunked")]),
        case(ConnectionField, &[with("te", "gzip")]),
        case(PseudoUnknown, &[head(&[&[(":status", "200")], &plain[..]].concat())]),
        case(PseudoLate, &[head(&[plain[0], plain[1], ("a", "b"), plain[2]])]),
        case(PseudoRepeated, &[head(&[&plain[..1], &plain[..]].concat())]),
        case(PseudoRepeated, &[head(&[&plain[..], &plain[3..]].concat())]),
        case(PseudoMissing, &[head(&plain[1..])]),
        case(PseudoMissing, &[head(&[plain[0], plain[1]])]),
        case(PseudoMissing, &[head(&[plain[0], plain[2]])]),
        case(PathValue, &[head(&[plain[0], plain[1], (":path", "")])]),
        case(PathValue, &[head(&[plain[0], plain[1], (":path", "http://a/")])]),
        case(HostDiffers, &[with("host", "b")]),
        case(ConnectFields, &[head(&[(":method", "CONNECT")])]),
        case(ConnectFields, &[head(&fields("CONNECT", "/"))]),
    ]
}

fn limit_cases() -> Vec<Case> {
    use Rule::*;
    let start = frame(Kind::HEADERS, 0, 11, b"");
    let flood = |bytes: Vec<u8>| bytes.repeat(MAX_IDLE_FRAMES as usize + 1);
    // The server resets one stream before.
    let streams = (0..MAX_RESETS).map(|nth| 11 + 2 * nth);
    let resets = |bytes: fn(u32) -> Vec<u8>| streams.clone().flat_map(bytes).collect::<Vec<u8>>();
    vec![
        case(
            BlockTooLarge,
            &[
                start.clone(),
                frame(Kind::CONTINUATION, 0, 11, &[0x82; 16_384]).repeat(MAX_BLOCK / 16_384),
                frame(Kind::CONTINUATION, 4, 11, &[0x82]),
            ],
        ),
        case(
            TooManyContinuations,
            &[start, frame(Kind::CONTINUATION, 0, 11, b"").repeat(MAX_CONTINUATIONS as usize + 1)],
        ),
        case(TooManyIdleFrames, &[flood(settings(&[]))]),
        case(TooManyIdleFrames, &[flood(frame(Kind::PING, 0, 0, &[0; 8]))]),
        case(TooManyIdleFrames, &[flood(frame(Kind::PRIORITY, 0, 1, &[0; 5]))]),
        case(TooManyIdleFrames, &[flood(frame(Kind(0x99), 0, 1, b""))]),
        case(TooManyIdleFrames, &[flood(window_update(3, 1))]),
        case(TooManyIdleFrames, &[flood(reset(5, ErrorCode::CANCEL))]),
        case(TooManyIdleFrames, &[flood(go_away(99, ErrorCode::NO_ERROR, b""))]),
        case(TooManyIdleFrames, &[flood(data(1, b"", false))]),
        case(TooManyIdleFrames, &[flood(headers(9, &[], true))]),
        // On a stream that was reset, content is no progress, even if it ends the stream.
        case(TooManyIdleFrames, &[flood(data(9, b"", true))]),
        case(TooManyIdleFrames, &[flood(data(9, b"a", true))]),
        // The client resets its requests (CVE-2023-44487), or lets the server do that (CVE-2025-8671).
        case(
            TooManyResets,
            &[resets(|id| [request(id, "GET", true), reset(id, ErrorCode::CANCEL)].concat())],
        ),
        case(
            TooManyResets,
            &[resets(|id| [request(id, "GET", true), window_update(id, 0)].concat())],
        ),
        case(TooManyResets, &[resets(|id| headers(id, &fields("GET", ""), true))]),
        Case {
            rule: FieldsTooLarge,
            bytes: with("x", &"x".repeat(200)),
            config: Config { header_list: 300, ..Config::SERVER },
        },
    ]
}

fn cases() -> Vec<Case> {
    let all = [frame_cases(), stream_cases(), block_cases(), message_cases(), limit_cases()];
    all.into_iter().flatten().collect()
}

/// What the server reports and sends, when its input comes in these pieces.
fn served<'a>(config: Config, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Seen>, Vec<u8>) {
    let mut run = Run::new(config);
    run.feed(write::PREFACE);
    run.feed(&settings(&[]));
    run.feed(&request(1, "POST", false));
    run.feed(&request(3, "GET", true));
    run.feed(&request(5, "GET", true));
    run.respond(5, b"x");
    run.feed(&headers(9, &fields("GET", ""), true));
    // From here on, the table that the server announced is the limit.
    run.feed(&frame(Kind::SETTINGS, flag::ACK, 0, b""));
    run.take();
    run.out.clear();
    pieces.for_each(|piece| run.feed(piece));
    (run.take(), run.out)
}

/// A connection that continues answers this.
fn ping() -> Vec<u8> {
    frame(Kind::PING, 0, 0, b"continue")
}

/// The rules that only servers can violate.
pub const OF_SERVERS: &[Rule] = &[
    Rule::PushEnabled,
    Rule::GoAwayIncreased,
    Rule::DataBeforeHead,
    Rule::InterimEnds,
    Rule::StatusRepeated,
    Rule::StatusMissing,
    Rule::StatusValue,
    Rule::StatusSwitching,
    Rule::ContentForbidden,
    Rule::TooManyInterim,
];

#[test]
fn every_rule_for_clients_is_violated_by_a_case() {
    let found: BTreeSet<Rule> = cases().iter().map(|case| case.rule).collect();
    let of_clients = Rule::ALL.iter().filter(|rule| !OF_SERVERS.contains(rule));
    let missing: Vec<_> = of_clients.filter(|rule| !found.contains(rule)).collect();
    // Those that precede the settings; below.
    assert_eq!(missing, [&Rule::PrefaceInvalid, &Rule::SettingsMissing]);
}

#[test]
fn each_ends_its_stream_or_connection_with_its_code() {
    for Case { rule, bytes, config } in cases() {
        let (seen, out) = served(config, [&bytes[..], &ping()].into_iter());
        let frames = frames(&out);
        let name = format!("{rule:?} {:?}", bytes.get(..40).unwrap_or(&bytes));
        let (last, payload) = frames.last().expect("an answer");
        match rule.scope() {
            Scope::Connection => {
                assert_eq!(seen.last(), Some(&Seen::Failed(rule)), "{name}");
                assert_eq!(last.kind, Kind::GOAWAY, "{name}");
                assert_eq!(payload[4..], rule.code().0.to_be_bytes(), "{name}");
            }
            Scope::Stream => {
                let resets: Vec<_> =
                    frames.iter().filter(|(header, _)| header.kind == Kind::RST_STREAM).collect();
                assert_eq!(resets.len(), 1, "{name}");
                let (stream, code) = (resets[0].0.stream, &resets[0].1[..]);
                assert_eq!(code, rule.code().0.to_be_bytes(), "{name}");
                // A stream that was not reported before is not reported at all.
                let is_known = |seen: &Seen| matches!(seen, Seen::Request(id, ..) if *id == stream);
                let is_reported = stream < 11 || seen.iter().any(is_known);
                let wrong = Seen::Wrong(stream, rule);
                assert_eq!(seen.contains(&wrong), is_reported, "{name}: {seen:?}");
                assert_eq!((last.kind, &payload[..]), (Kind::PING, &b"continue"[..]), "{name}");
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
fn the_preface_and_settings_come_first() {
    let mut run = Run::new(Config::SERVER);
    run.feed(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r");
    run.feed(b"x");
    assert_eq!(run.take(), [Seen::Failed(Rule::PrefaceInvalid)]);
    for bytes in [ping(), frame(Kind::SETTINGS, flag::ACK, 0, b""), request(1, "GET", true)] {
        let mut run = Run::new(Config::SERVER);
        run.feed(write::PREFACE);
        run.feed(&bytes);
        assert_eq!(run.take(), [Seen::Failed(Rule::SettingsMissing)]);
    }
}

#[test]
fn an_error_of_a_stream_that_is_not_open_ends_the_connection() {
    for stream in [5, 11] {
        let mut run = Run::settled(Config::SERVER, &[]);
        run.answer = Some(b"x".to_vec());
        run.feed(&request(5, "GET", true));
        run.take();
        run.feed(&frame(Kind::PRIORITY, 0, stream, &[0; 4]));
        assert_eq!(run.take(), [Seen::Failed(Rule::PriorityLength)]);
    }
}

#[test]
fn each_limit_is_reached_without_an_error() {
    let config = Config { header_list: 4 * 32 + 44 + 200, max_streams: 1, ..Config::SERVER };
    let mut run = Run::settled(config, &[]);
    run.answer = Some(b"x".to_vec());
    run.feed(&ping().repeat(MAX_IDLE_FRAMES as usize - 2));
    // The names and values of these have 44 bytes, with a field of 168 + 32.
    let long = "x".repeat(168 - 1);
    let all = [&fields("GET", "/")[..], &[("x", &*long)]].concat();
    let size: usize = all.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    assert!(size <= config.header_list as usize, "{size}");
    let (first, second) = (block(&all), frame(Kind::CONTINUATION, flag::END_HEADERS, 1, b""));
    run.feed(&frame(Kind::HEADERS, flag::END_STREAM, 1, &first));
    run.feed(&frame(Kind::CONTINUATION, 0, 1, b"").repeat(MAX_CONTINUATIONS as usize - 1));
    run.feed(&second);
    // An answered request pays for one that is reset.
    for nth in 0..3 * MAX_RESETS {
        let stream = 3 + 2 * nth;
        run.feed(&request(stream, "POST", !nth.is_multiple_of(2)));
        if nth.is_multiple_of(2) {
            run.feed(&reset(stream, ErrorCode::CANCEL));
        }
    }
    let seen = run.take();
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Failed(_) | Seen::Wrong(..))));
    let answers = run.frames().iter().filter(|(header, _)| header.kind == Kind::DATA).count();
    assert_eq!(answers as u32, 1 + 3 * MAX_RESETS / 2);
}
