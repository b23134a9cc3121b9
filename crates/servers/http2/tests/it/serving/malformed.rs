//! For each rule, what violates it. Connections and streams end with the code of the rule, whole and split
//! at every byte.

use super::run::{Run, Seen, fields, request};
use crate::{
    cases::{Case, End, ping},
    run::{Outcome, block, data, frame, headers, reset, settings, window_update},
};
use regatta_http2::{
    ErrorCode, Rule,
    frame::{Kind, flag, write},
    server::{Config, MAX_CONTINUATIONS, MAX_IDLE_FRAMES, MAX_RESETS},
};
use std::collections::BTreeSet;

/// A server whose client violates rules, after its preface, SETTINGS and acknowledgment. It has these
/// streams: POST without its content on 1; GET that is not answered on 3; 5 was answered; 7 was skipped; and
/// 9 was reset by the server.
fn end() -> End {
    End {
        config: Config::SERVER,
        stream: 11,
        fields: fields("POST", "/").to_vec(),
        head: Vec::new(),
        closed: 5,
        indexed: 0x82,
        literal: 0x41,
        wrong: &[1, 3, 11, 13],
        served,
    }
}

fn case(rule: Rule, parts: &[Vec<u8>]) -> Case {
    end().case(rule, parts)
}

fn connection_cases() -> Vec<Case> {
    use Rule::*;
    let few = Config { max_streams: 3, ..Config::SERVER };
    let small = Config { header_table: 100, ..Config::SERVER };
    vec![
        case(SettingsAckUnexpected, &[frame(Kind::SETTINGS, flag::ACK, 0, b"")]),
        case(PushSetting, &[settings(&[(2, 2)])]),
        case(StreamOrder, &[request(2, "GET", true)]),
        case(StreamOrder, &[request(7, "GET", true)]),
        case(HalfClosedStream, &[data(3, b"a", false)]),
        case(HalfClosedStream, &[headers(3, &[("a", "b")], true)]),
        Case {
            config: few,
            ..case(TooManyStreams, &[request(11, "GET", true), request(13, "GET", true)])
        },
        // In trailers, and on a stream that was reset.
        case(IndexZero, &[frame(Kind::HEADERS, 5, 1, &[0x80])]),
        case(IndexZero, &[frame(Kind::HEADERS, 5, 9, &[0x80])]),
        Case { config: small, ..case(TableSizeMissing, &[request(11, "GET", true)]) },
    ]
}

fn message_cases() -> Vec<Case> {
    use Rule::*;
    let head = |all: &[(&str, &str)]| headers(11, all, false);
    let plain = fields("POST", "/");
    vec![
        case(PseudoInTrailers, &[headers(1, &[(":path", "/")], true)]),
        case(FieldValue, &[head(&[(":method", "GE\nT"), plain[1], plain[2]])]),
        case(PseudoUnknown, &[head(&[&[(":status", "200")], &plain[..]].concat())]),
        case(PseudoLate, &[head(&[plain[0], plain[1], ("a", "b"), plain[2]])]),
        case(PseudoRepeated, &[head(&[&plain[..1], &plain[..]].concat())]),
        case(PseudoRepeated, &[head(&[&plain[..], &plain[3..]].concat())]),
        case(PseudoMissing, &[head(&plain[1..])]),
        case(PseudoMissing, &[head(&[plain[0], plain[1]])]),
        case(PseudoMissing, &[head(&[plain[0], plain[2]])]),
        case(PathValue, &[head(&[plain[0], plain[1], (":path", "")])]),
        case(PathValue, &[head(&[plain[0], plain[1], (":path", "http://a/")])]),
        case(HostDiffers, &[end().with("host", "b")]),
        case(ConnectFields, &[head(&[(":method", "CONNECT")])]),
        case(ConnectFields, &[head(&fields("CONNECT", "/"))]),
    ]
}

fn limit_cases() -> Vec<Case> {
    use Rule::*;
    let flood = |bytes: Vec<u8>| bytes.repeat(MAX_IDLE_FRAMES as usize + 1);
    // The server resets one stream before.
    let streams = (0..MAX_RESETS).map(|nth| 11 + 2 * nth);
    let resets = |bytes: fn(u32) -> Vec<u8>| streams.clone().flat_map(bytes).collect::<Vec<u8>>();
    vec![
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
    ]
}

fn cases() -> Vec<Case> {
    let all = [end().cases(), connection_cases(), message_cases(), limit_cases()];
    all.into_iter().flatten().collect()
}

fn served(config: Config, pieces: &[&[u8]]) -> Outcome {
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
    pieces.iter().for_each(|piece| run.feed(piece));
    (run.take(), run.out)
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
    end().assert_ends(cases());
}

#[test]
fn each_is_the_same_at_every_split() {
    end().assert_same_at_every_split(cases());
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
