//! Flow control, in both directions.

use crate::run::{Run, Seen, data, headers, settings, window_update};
use regatta_http2::{
    Rule,
    client::Config,
    frame::{Kind, flag},
};

const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;

/// The increments that the client sent, by stream.
fn updates(run: &mut Run) -> Vec<(u32, u32)> {
    let frames = run.frames().into_iter().filter(|(header, _)| header.kind == Kind::WINDOW_UPDATE);
    frames
        .map(|(header, payload)| (header.stream, u32::from_be_bytes(payload.try_into().unwrap())))
        .collect()
}

#[test]
fn content_is_limited_by_both_windows_and_settings_change_those_of_open_streams() {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[(INITIAL_WINDOW_SIZE, 100)]));
    let (first, second) = (run.start(false, 70_000), run.start(false, 70_000));
    assert_eq!(run.client.claim(first, 70_000), 100);
    assert_eq!(run.client.claim(first, 70_000), 0);
    run.feed(&window_update(first, 50));
    assert_eq!(run.client.claim(first, 20), 20);
    // The window of `first` is 30 - 100 + 10: it becomes negative (RFC 9113, 6.9.2).
    run.feed(&settings(&[(INITIAL_WINDOW_SIZE, 10)]));
    assert_eq!((run.client.claim(first, 1), run.client.claim(second, 70_000)), (0, 10));
    run.feed(&window_update(first, 60));
    assert_eq!(run.client.claim(first, 1), 0, "the window is 0 now");
    run.feed(&window_update(first, 1));
    assert_eq!(run.client.claim(first, 5), 1);
    // The connection has 65,535 whatever the settings say.
    run.feed(&settings(&[(INITIAL_WINDOW_SIZE, 1 << 30)]));
    let left = 65_535 - 100 - 20 - 10 - 1;
    assert_eq!(run.client.claim(second, 70_000), left);
    assert_eq!(run.client.claim(first, 70_000), 0);
    run.feed(&window_update(0, 1 << 20));
    assert_eq!(run.client.claim(first, 70_000), 70_000 - 121);
    assert_eq!(run.client.claim(second, 70_000), 70_000 - 10 - left);
    let windows = run.take().into_iter().filter(|seen| matches!(seen, Seen::Window(_)));
    let expected = [Some(first), Some(first), Some(first), None].map(Seen::Window);
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

#[test]
fn data_frames_are_no_longer_than_the_server_permits_and_the_last_one_ends_the_stream() {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[(MAX_FRAME_SIZE, 20_000), (INITIAL_WINDOW_SIZE, 50_000)]));
    let content: Vec<u8> = (0..60_000_u32).map(|n| n as u8).collect();
    let id = run.start(false, 60_000);
    run.out.clear();
    assert_eq!(run.client.send(id, &content, &mut run.out), 50_000);
    assert_eq!(run.client.send(id, &content[50_000..], &mut run.out), 0);
    run.feed(&window_update(id, 20_000));
    assert_eq!(run.client.send(id, &content[50_000..], &mut run.out), 10_000);
    assert_eq!(run.client.send(id, b"", &mut run.out), 0);
    let frames = run.frames();
    let lengths: Vec<u32> = frames.iter().map(|(header, _)| header.length).collect();
    assert_eq!(lengths, [20_000, 20_000, 10_000, 10_000]);
    let ends: Vec<bool> = frames.iter().map(|(header, _)| header.has(flag::END_STREAM)).collect();
    assert_eq!(ends, [false, false, false, true]);
    let sent: Vec<u8> = frames.into_iter().flat_map(|(_, payload)| payload).collect();
    assert_eq!(sent, content);
}

#[test]
fn room_is_limited_by_the_windows() {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[]));
    assert_eq!(run.client.room(0), 100);
    assert_eq!(run.client.room(1000), 65);
    assert_eq!(run.client.room(65_535), 1);
    assert_eq!(run.client.room(65_536), 0, "more than the window of a stream");
    let id = run.start(false, 1000);
    assert_eq!(run.client.claim(id, 1000), 1000);
    assert_eq!(run.client.room(1000), 64);
}

/// Half of a window is used before it is refilled, so that not every frame costs an update.
#[test]
fn receive_windows_are_refilled_when_half_is_used() {
    let mut run =
        Run::new(Config { stream_window: 1000, connection_window: 65_535, ..Config::CLIENT });
    run.feed(&settings(&[]));
    run.start(false, 0);
    run.start(false, 0);
    run.feed(&headers(1, &[(":status", "200")], false));
    run.feed(&headers(3, &[(":status", "200")], false));
    run.frames();
    run.feed(&data(1, &[0; 499], false));
    assert_eq!(updates(&mut run), []);
    // Padding counts, too.
    run.feed(&crate::run::frame(Kind::DATA, flag::PADDED, 1, &[0]));
    assert_eq!(updates(&mut run), [(1, 500)]);
    let mut received = 500;
    while received + 1000 <= 65_535 / 2 {
        run.feed(&data(1, &[0; 1000], false));
        assert_eq!(updates(&mut run), [(1, 1000)]);
        received += 1000;
    }
    run.feed(&data(3, &[0; 1000], true));
    assert_eq!(updates(&mut run), [(0, received + 1000)], "no update for an ended stream");
}

#[test]
fn a_window_of_one_byte_does_not_stall() {
    let mut run = Run::new(Config { stream_window: 1, ..Config::CLIENT });
    run.feed(&settings(&[]));
    run.start(false, 0);
    run.feed(&headers(1, &[(":status", "200"), ("content-length", "3")], false));
    run.frames();
    for (byte, ends) in [(b"a", false), (b"b", false), (b"c", true)] {
        run.feed(&data(1, byte, ends));
        assert_eq!(updates(&mut run), if ends { vec![] } else { vec![(1, 1)] });
    }
    assert_eq!(run.take().last(), Some(&Seen::Content(1, b"abc".to_vec(), true)));
}

#[test]
fn content_of_a_stream_that_is_wrong_still_counts_for_the_connection() {
    let mut run = Run::new(Config { connection_window: 65_535, ..Config::CLIENT });
    run.feed(&settings(&[]));
    run.start(false, 0);
    run.start(false, 0);
    run.feed(&headers(1, &[(":status", "200"), ("content-length", "1")], false));
    run.frames();
    for _ in 0..2 {
        run.feed(&data(1, &[0; 16_384], false));
    }
    assert_eq!(run.take()[2..], [Seen::Wrong(1, Rule::ContentLength)]);
    assert_eq!(updates(&mut run), [(0, 32_768)]);
}
