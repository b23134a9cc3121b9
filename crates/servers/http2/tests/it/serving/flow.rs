//! Responses within the windows of the client, and the windows that the server gives.

use super::run::{Run, Seen, request};
use crate::run::{data, frame, reset, settings, window_update};
use regatta_http2::{
    ErrorCode, Rule,
    frame::{Kind, flag, write},
    server::Config,
};

/// The lengths and streams of the DATA frames that were sent, and whether each ends its stream.
fn sent(run: &mut Run) -> Vec<(u32, u32, bool)> {
    let frames = run.frames();
    let data = frames.iter().filter(|(header, _)| header.kind == Kind::DATA);
    data.map(|(header, _)| (header.stream, header.length, header.flags & 1 != 0)).collect()
}

fn contents(run: &mut Run) -> Vec<u8> {
    let frames = run.frames();
    let data = frames.into_iter().filter(|(header, _)| header.kind == Kind::DATA);
    data.flat_map(|(_, payload)| payload).collect()
}

#[test]
fn content_waits_for_the_window_of_its_stream() {
    let mut run = Run::settled(Config::SERVER, &[(4, 3)]);
    run.feed(&request(1, "GET", true));
    run.respond(1, b"abcdefgh");
    assert_eq!(sent(&mut run), [(1, 3, false)]);
    run.feed(&window_update(1, 2));
    assert_eq!(sent(&mut run), [(1, 2, false)]);
    run.feed(&settings(&[(4, 2)]));
    run.feed(&window_update(1, 1));
    assert_eq!(sent(&mut run), []);
    run.feed(&settings(&[(4, 6)]));
    assert_eq!(sent(&mut run), [(1, 3, true)]);
    assert_eq!(run.server.open_streams(), 0);
}

#[test]
fn one_byte_windows_deliver_all_bytes_in_their_order() {
    let mut run = Run::settled(Config::SERVER, &[(4, 0)]);
    let content: Vec<u8> = (0..200).collect();
    run.feed(&request(1, "GET", true));
    run.respond(1, &content);
    let mut all = contents(&mut run);
    for _ in 0..200 {
        run.feed(&window_update(1, 1));
        all.extend(contents(&mut run));
    }
    assert_eq!(all, content);
    assert_eq!(run.server.open_streams(), 0);
}

#[test]
fn content_waits_for_the_window_of_the_connection_and_streams_take_turns() {
    let mut run = Run::settled(Config::SERVER, &[(4, 100_000)]);
    for stream in [1, 3, 5] {
        run.feed(&request(stream, "GET", true));
        run.respond(stream, &[b'x'; 40_000]);
    }
    let lengths = |all: Vec<(u32, u32, bool)>| {
        let mut sums = [0; 3];
        all.iter().for_each(|(stream, length, _)| sums[*stream as usize / 2] += length);
        sums
    };
    assert_eq!(lengths(sent(&mut run)), [40_000, 25_535, 0]);
    run.feed(&window_update(0, 20_000));
    assert_eq!(lengths(sent(&mut run)), [0, 14_465, 5535]);
    run.feed(&request(7, "GET", true));
    run.respond(7, b"late");
    run.feed(&window_update(0, 34_465));
    assert_eq!(lengths(sent(&mut run)[..3].to_vec()), [0, 0, 34_465]);
    assert_eq!(run.server.open_streams(), 1);
    run.feed(&window_update(0, 4));
    assert_eq!(sent(&mut run), [(7, 4, true)]);
}

#[test]
fn a_frame_is_at_most_as_long_as_the_client_permits() {
    let mut run = Run::settled(Config::SERVER, &[(5, 20_000)]);
    run.feed(&request(1, "GET", true));
    run.respond(1, &[b'x'; 50_000]);
    assert_eq!(sent(&mut run), [(1, 20_000, false), (1, 20_000, false), (1, 10_000, true)]);
}

#[test]
fn a_reset_stream_gives_its_place_to_others_and_keeps_nothing() {
    let mut run = Run::settled(Config { max_streams: 2, ..Config::SERVER }, &[(4, 0)]);
    for stream in [1, 3] {
        run.feed(&request(stream, "GET", true));
        run.respond(stream, b"abc");
    }
    run.feed(&request(5, "GET", true));
    assert_eq!(run.frames().last().unwrap().1, ErrorCode::REFUSED_STREAM.0.to_be_bytes());
    run.feed(&reset(1, ErrorCode::CANCEL));
    run.feed(&request(7, "GET", true));
    assert!(run.respond(7, b"de"));
    run.feed(&settings(&[(4, 100)]));
    assert_eq!(sent(&mut run), [(3, 3, true), (7, 2, true)]);
    assert_eq!(run.take()[2], Seen::Reset(1, ErrorCode::CANCEL));
}

#[test]
fn a_smaller_window_applies_from_the_acknowledgment_on() {
    let mut run = Run::new(Config { stream_window: 100, ..Config::SERVER });
    run.feed(write::PREFACE);
    run.feed(&settings(&[]));
    run.feed(&request(1, "POST", false));
    run.feed(&data(1, &[b'x'; 150], false));
    run.feed(&frame(Kind::SETTINGS, flag::ACK, 0, b""));
    run.out.clear();
    // The window is -50 now. When content arrives, half of it is used again.
    run.feed(&request(3, "POST", false));
    run.feed(&data(3, &[b'x'; 100], false));
    run.feed(&data(1, b"", false));
    let raised: Vec<_> = run.frames().iter().map(|(header, _)| header.stream).collect();
    assert_eq!(raised, [3, 1]);
    run.feed(&data(1, &[b'x'; 50], false));
    assert!(!run.take().iter().any(|seen| matches!(seen, Seen::Wrong(..))));
    run.feed(&data(1, &[b'x'; 101], false));
    assert_eq!(run.take().pop(), Some(Seen::Wrong(1, Rule::StreamWindowExceeded)));
}

#[test]
fn a_window_is_raised_before_the_settings_are_acknowledged() {
    let mut run = Run::new(Config::SERVER);
    run.feed(write::PREFACE);
    run.feed(&settings(&[]));
    run.feed(&request(1, "POST", false));
    run.out.clear();
    run.feed(&data(1, &[b'x'; 16_384], false).repeat(2));
    let raised: Vec<_> = run.frames().iter().map(|(header, _)| header.stream).collect();
    assert_eq!(raised, [1]);
}

#[test]
fn windows_for_requests_are_raised_when_half_of_them_is_used() {
    let config = Config { stream_window: 1000, connection_window: 65_535, ..Config::SERVER };
    let mut run = Run::settled(config, &[]);
    run.feed(&request(1, "POST", false));
    let mut raised = [0; 2];
    for _ in 0..500 {
        run.feed(&data(1, &[b'x'; 400], false));
        for (header, payload) in run.frames() {
            assert_eq!(header.kind, Kind::WINDOW_UPDATE);
            raised[header.stream as usize] += u32::from_be_bytes(payload.try_into().unwrap());
        }
    }
    // At most half of each window is not returned yet.
    assert!(raised[1] > 200_000 - 500 && raised[0] > 200_000 - 32_768, "{raised:?}");
    run.feed(&data(1, &[b'x'; 1001], false));
    assert_eq!(run.take().pop(), Some(Seen::Wrong(1, Rule::StreamWindowExceeded)));
}
