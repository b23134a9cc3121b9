//! For each rule, what violates it. Connections and streams end with the code of the rule, whole and split
//! at every byte.

use crate::{
    cases::{Case, End},
    run::{Outcome, Run, Seen, block, data, frame, go_away, headers, reset, settings},
};
use regatta_http2::{
    ErrorCode, Rule,
    client::{Config, MAX_BLOCK, MAX_CONTINUATIONS, MAX_IDLE_FRAMES, MAX_INTERIM},
    frame::{Kind, flag},
};
use std::collections::BTreeSet;

/// A client whose server violates rules after its SETTINGS. The client has these requests open: GET on
/// stream 1, HEAD on 3, POST with 10 bytes of content, which are not sent, on 5, and GET on 7. Stream 9 was
/// answered.
fn end() -> End {
    End {
        config: Config::CLIENT,
        stream: 1,
        fields: vec![(":status", "200")],
        head: ok(1),
        closed: 9,
        indexed: 0x88,
        literal: 0x48,
        wrong: &[1, 3, 5],
        served,
    }
}

fn ok(stream: u32) -> Vec<u8> {
    status(stream, "200", false)
}

fn status(stream: u32, status: &str, ends: bool) -> Vec<u8> {
    headers(stream, &[(":status", status)], ends)
}

fn case(rule: Rule, parts: &[Vec<u8>]) -> Case {
    end().case(rule, parts)
}

fn connection_cases() -> Vec<Case> {
    use Rule::*;
    let ack = || frame(Kind::SETTINGS, flag::ACK, 0, b"");
    let small = Config { header_table: 100, ..Config::CLIENT };
    let table = [ack(), end().coded(&[0x3f, 0xe1, 0x1f])];
    vec![
        case(SettingsAckUnexpected, &[ack(), ack()]),
        case(PushEnabled, &[settings(&[(2, 1)])]),
        case(PushEnabled, &[settings(&[(2, 2)])]),
        case(
            GoAwayIncreased,
            &[go_away(7, ErrorCode::NO_ERROR, b""), go_away(9, ErrorCode::NO_ERROR, b"")],
        ),
        case(IdleStream, &[ok(2)]),
        case(IdleStream, &[ok(11)]),
        case(ClosedStream, &[reset(1, ErrorCode::CANCEL), ok(1)]),
        // Its request is not sent completely.
        case(ClosedStream, &[status(5, "200", true), data(5, b"a", false)]),
        case(ClosedStream, &[status(5, "200", true), ok(5)]),
        Case { config: small, ..case(TableSizeTooLarge, &table) },
        Case { config: small, ..case(TableSizeMissing, &[ack(), ok(1)]) },
        // The first one precedes its head, so the client resets the stream.
        case(TooManyIdleFrames, &[data(1, b"a", true).repeat(MAX_IDLE_FRAMES as usize + 1)]),
    ]
}

fn message_cases() -> Vec<Case> {
    use Rule::*;
    vec![
        case(DataBeforeHead, &[data(1, b"a", false)]),
        case(DataBeforeHead, &[status(1, "100", false), data(1, b"", true)]),
        case(InterimEnds, &[status(1, "103", true)]),
        case(TooManyInterim, &[status(1, "103", false).repeat(usize::from(MAX_INTERIM) + 1)]),
        case(TrailersWithoutEnd, &[ok(1), ok(1)]),
        case(PseudoUnknown, &[end().with(":path", "/")]),
        case(PseudoLate, &[headers(1, &[("a", "b"), (":status", "200")], false)]),
        case(StatusRepeated, &[end().with(":status", "200")]),
        case(StatusMissing, &[headers(1, &[("a", "b")], false)]),
        case(StatusMissing, &[end().coded(b"")]),
        case(StatusValue, &[status(1, "20", false)]),
        case(StatusValue, &[status(1, "099", false)]),
        case(StatusValue, &[status(1, "600", false)]),
        case(StatusValue, &[status(1, "2x0", false)]),
        case(StatusSwitching, &[status(1, "101", false)]),
        case(ContentForbidden, &[ok(3), data(3, b"a", true)]),
        case(ContentForbidden, &[status(1, "204", false), data(1, b"a", true)]),
        case(ContentForbidden, &[status(1, "304", false), data(1, b"a", true)]),
        Case {
            // Each byte is a field of 42 bytes.
            config: Config { header_list: 41_999, ..Config::CLIENT },
            ..case(FieldsTooLarge, &[end().coded(&[0x88; 1000])])
        },
    ]
}

fn cases() -> Vec<Case> {
    let all = [end().cases(), connection_cases(), message_cases()];
    all.into_iter().flatten().collect()
}

fn served(config: Config, pieces: &[&[u8]]) -> Outcome {
    let mut run = Run::new(config);
    run.feed(&settings(&[]));
    for (is_head, content) in [(false, 0), (true, 0), (false, 10), (false, 0), (false, 0)] {
        run.start(is_head, content);
    }
    run.feed(&status(9, "200", true));
    run.take();
    run.out.clear();
    pieces.iter().for_each(|piece| run.feed(piece));
    (run.take(), run.out)
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
    end().assert_ends(cases());
}

#[test]
fn each_is_the_same_at_every_split() {
    end().assert_same_at_every_split(cases());
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
