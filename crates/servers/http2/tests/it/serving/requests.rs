//! Requests and responses as transcripts.

use super::run::{Run, Seen, fields, request};
use crate::run::{block, data, frame, headers, reset, settings, text};
use regatta_http2::{
    ErrorCode,
    frame::{Header, Kind, flag, write},
    hpack::{Decoder, Fields},
    server::{Config, Server},
};

fn header(kind: Kind, flags: u8, stream: u32, length: u32) -> Header {
    Header { length, kind, flags, stream }
}

#[test]
fn the_preface_and_the_settings_of_both_ends_precede_all_else() {
    let mut run = Run::new(Config { max_streams: 7, ..Config::SERVER });
    run.feed(&write::PREFACE[..23]);
    assert_eq!(run.out, b"");
    run.feed(&write::PREFACE[23..]);
    let sent = run.frames();
    assert_eq!(sent[0].0, header(Kind::SETTINGS, 0, 0, 24));
    assert!(sent[0].1.windows(6).any(|value| value == [0, 3, 0, 0, 0, 7]), "{sent:?}");
    assert_eq!(sent[1].0, header(Kind::WINDOW_UPDATE, 0, 0, 4));
    run.feed(&settings(&[(4, 10)]));
    assert_eq!(run.frames(), [(header(Kind::SETTINGS, flag::ACK, 0, 0), vec![])]);
    assert!(!run.server.is_settled());
    run.feed(&frame(Kind::SETTINGS, flag::ACK, 0, b""));
    assert!(run.server.is_settled() && run.server.peer().initial_window_size == 10);
}

#[test]
fn a_request_is_answered_with_a_head_and_content_that_ends_the_stream() {
    let mut run = Run::settled(Config::SERVER, &[]);
    run.feed(&request(1, "GET", true));
    let seen = ":method=GET :scheme=http :path=/ :authority=a";
    assert_eq!(run.take(), [Seen::Request(1, seen.into(), true)]);
    assert!(run.server.is_open(1) && run.respond(1, b"abc"));
    assert_eq!(
        run.frames(),
        [
            (header(Kind::HEADERS, flag::END_HEADERS, 1, 1), vec![0x88]),
            (header(Kind::DATA, flag::END_STREAM, 1, 3), b"abc".to_vec()),
        ]
    );
    assert_eq!(run.server.open_streams(), 0);
    assert!(!run.respond(1, b"abc"), "it was answered");
    run.feed(&request(3, "GET", true));
    run.respond(3, b"");
    let flags = flag::END_HEADERS | flag::END_STREAM;
    assert_eq!(run.frames(), [(header(Kind::HEADERS, flags, 3, 1), vec![0x88])]);
}

#[test]
fn content_and_trailers_precede_the_answer_and_streams_end_in_any_order() {
    let mut run = Run::settled(Config::SERVER, &[]);
    run.answer = Some(b"x".to_vec());
    run.feed(&request(1, "POST", false));
    run.feed(&request(3, "POST", false));
    run.feed(&frame(Kind::DATA, flag::PADDED, 3, b"\x02abc\0\0"));
    run.feed(&data(1, b"de", false));
    run.feed(&headers(3, &[("check", "1")], true));
    run.feed(&data(1, b"f", true));
    let seen = run.take();
    assert_eq!(
        seen[2..],
        [
            Seen::Content(3, b"abc".into(), false),
            Seen::Content(1, b"de".into(), false),
            Seen::Trailers(3, "check=1".into()),
            Seen::Content(1, b"f".into(), true),
        ]
    );
    let streams: Vec<u32> = run.frames().iter().map(|(header, _)| header.stream).collect();
    assert_eq!(streams, [3, 3, 1, 1]);
}

#[test]
fn what_a_request_says_is_found_and_host_stands_in_for_the_authority() {
    let mut server = Run::settled(Config::SERVER, &[]).server;
    let mut named = |all: &[(&str, &str)], stream: u32| {
        let bytes = headers(stream, all, false);
        let mut out = Vec::new();
        match server.next(&mut &bytes[..], &mut out) {
            Ok(Some(regatta_http2::server::Event::Request { request, .. })) => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                (
                    request.content_length(),
                    request.authority().map(text),
                    request.expects().map(text),
                    request.is_repeated,
                )
            }
            other => panic!("{other:?}"),
        }
    };
    let plain = fields("GET", "/");
    assert_eq!(named(&plain, 1), (None, Some("a".into()), None, false));
    assert_eq!(named(&plain, 3), (None, Some("a".into()), None, true));
    let more = [&plain[..3], &[("content-length", "5"), ("expect", "x"), ("host", "b")]].concat();
    assert_eq!(named(&more, 5), (Some(5), Some("b".into()), Some("x".into()), false));
    let connect = [(":method", "CONNECT"), (":authority", "a:1")];
    assert_eq!(named(&connect, 7), (None, Some("a:1".into()), None, false));
}

#[test]
fn an_early_answer_says_that_the_remaining_content_is_not_wanted() {
    let mut run = Run::settled(Config::SERVER, &[]);
    run.feed(&request(1, "POST", false));
    run.server.inform(1, &block(&[(":status", "100")]), &mut run.out);
    run.respond(1, b"no");
    // What was on its way is discarded. The reset is not in the write of the response.
    run.feed(&data(1, b"abc", false));
    let kinds: Vec<Kind> = run.frames().iter().map(|(header, _)| header.kind).collect();
    assert_eq!(kinds, [Kind::HEADERS, Kind::HEADERS, Kind::DATA]);
    run.feed(&data(1, b"abc", false));
    assert_eq!(run.frames(), [(header(Kind::RST_STREAM, 0, 1, 4), vec![0, 0, 0, 0])]);
    run.feed(&data(1, b"abc", true));
    assert_eq!(run.out, b"");
    assert_eq!(run.take().len(), 1);
}

#[test]
fn after_goaway_requests_so_far_are_answered_and_later_ones_are_ignored() {
    let mut run = Run::settled(Config::SERVER, &[]);
    run.feed(&request(1, "GET", true));
    run.server.drain(&mut run.out);
    assert_eq!(run.frames(), [(header(Kind::GOAWAY, 0, 0, 8), vec![0, 0, 0, 1, 0, 0, 0, 0])]);
    let fields = [("x", "inserted")];
    run.feed(&headers(3, &fields, false));
    run.feed(&data(3, b"abc", true));
    run.feed(&reset(3, ErrorCode::CANCEL));
    run.server.drain(&mut run.out);
    assert_eq!(run.take().len(), 1);
    assert_eq!(run.out, b"");
    assert!(run.respond(1, b"a"));
    assert_eq!(run.server.open_streams(), 0);
}

#[test]
fn the_end_of_the_input_refuses_incomplete_requests_so_that_they_are_sent_again() {
    let mut run = Run::settled(Config::SERVER, &[]);
    run.feed(&request(1, "POST", false));
    run.feed(&request(3, "GET", true));
    run.server.end(&mut run.out);
    run.server.end(&mut run.out);
    assert_eq!(
        run.frames(),
        [
            (header(Kind::RST_STREAM, 0, 1, 4), vec![0, 0, 0, 7]),
            (header(Kind::GOAWAY, 0, 0, 8), vec![0, 0, 0, 3, 0, 0, 0, 0]),
        ]
    );
}

#[test]
fn the_end_of_the_input_cuts_off_responses_that_wait_for_a_window() {
    let mut run = Run::settled(Config::SERVER, &[(4, 2)]);
    run.feed(&request(1, "GET", true));
    run.feed(&request(3, "GET", true));
    run.feed(&request(5, "POST", false));
    assert!(run.respond(1, b"abc") && run.respond(5, b"abc"));
    run.frames();
    run.server.end(&mut run.out);
    let cancel = |id| (header(Kind::RST_STREAM, 0, id, 4), vec![0, 0, 0, 8]);
    let goes = (header(Kind::GOAWAY, 0, 0, 8), vec![0, 0, 0, 5, 0, 0, 0, 0]);
    assert_eq!(run.frames(), [cancel(1), cancel(5), goes]);
    // A job may still end.
    assert!(run.respond(3, b"a") && !run.respond(1, b"a"));
    assert_eq!(run.server.open_streams(), 0);
}

#[test]
fn a_smaller_table_of_the_client_is_acknowledged_by_all_later_responses() {
    let mut run = Run::settled(Config::SERVER, &[(1, 100)]);
    run.answer = Some(Vec::new());
    run.feed(&request(1, "GET", true));
    run.feed(&request(3, "GET", true));
    run.feed(&settings(&[(1, 0)]));
    run.feed(&request(5, "GET", true));
    let blocks: Vec<Vec<u8>> = run
        .frames()
        .into_iter()
        .filter(|(header, _)| header.kind == Kind::HEADERS)
        .map(|(_, block)| block)
        .collect();
    assert_eq!(blocks, [[0x20, 0x88]; 3]);
    let (mut decoder, mut fields) = (Decoder::new(1000), Fields::default());
    decoder.set_limit(100);
    decoder.decode(&blocks[0], &mut fields).unwrap();
    assert_eq!(text(&fields), ":status=200");
}

#[test]
fn a_client_of_another_protocol_gets_settings_and_goaway() {
    let mut run = Run::new(Config::SERVER);
    run.feed(b"GET / HTTP/1.1\r\n\r\n");
    let kinds: Vec<Kind> = run.frames().iter().map(|(header, _)| header.kind).collect();
    assert_eq!(kinds, [Kind::SETTINGS, Kind::WINDOW_UPDATE, Kind::GOAWAY]);
    assert!(run.server.is_closed());
}

#[test]
fn a_setting_out_of_its_range_is_refused() {
    assert!(Server::new(Config { max_streams: 0, ..Config::SERVER }).is_err());
}
