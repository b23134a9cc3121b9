//! GOAWAY: which requests can be sent again.

use crate::run::{Run, Seen, data, go_away, headers, settings};
use regatta_http2::{
    ErrorCode, Rule,
    client::{Config, NotStarted, Request},
    frame::Kind,
};

fn run(requests: u32) -> Run {
    let mut run = Run::new(Config::CLIENT);
    run.feed(&settings(&[]));
    (0..requests).for_each(|_| {
        run.start(false, 0);
    });
    run.take();
    run.frames();
    run
}

fn head(stream: u32) -> Seen {
    Seen::Head(stream, ":status=200".to_owned(), true)
}

fn ok(stream: u32) -> Vec<u8> {
    headers(stream, &[(":status", "200")], true)
}

#[test]
fn streams_above_the_last_one_are_not_processed_and_the_others_are_answered() {
    let mut run = run(5);
    run.feed(&[ok(5), go_away(3, ErrorCode::NO_ERROR, b"bye"), ok(3), ok(1)].concat());
    let expected = [
        head(5),
        Seen::GoAway(3, ErrorCode::NO_ERROR, b"bye".to_vec()),
        Seen::NotProcessed(7),
        Seen::NotProcessed(9),
        head(3),
        head(1),
    ];
    assert_eq!(run.take(), expected);
    assert_eq!((run.client.open_streams(), run.frames()), (0, Vec::new()));
    let request = Request { place: 0, is_head: false, content: 0 };
    assert_eq!(run.client.start(request), Err(NotStarted::Closing));
    assert_eq!(run.client.room(0), 0);
}

#[test]
fn a_graceful_shutdown_announces_itself_before_its_last_stream() {
    let mut run = run(3);
    run.feed(&go_away(0x7fff_ffff, ErrorCode::NO_ERROR, b""));
    assert_eq!(run.take(), [Seen::GoAway(0x7fff_ffff, ErrorCode::NO_ERROR, Vec::new())]);
    assert_eq!(run.client.open_streams(), 3);
    run.feed(&go_away(1, ErrorCode::NO_ERROR, b""));
    let seen = run.take();
    assert_eq!(seen[1..], [Seen::NotProcessed(3), Seen::NotProcessed(5)]);
    run.feed(&ok(1));
    assert_eq!(run.take(), [head(1)]);
}

#[test]
fn a_server_that_answers_what_it_did_not_process_is_wrong() {
    let mut run = run(3);
    run.feed(&[go_away(1, ErrorCode::NO_ERROR, b""), ok(3)].concat());
    assert_eq!(run.take().last(), Some(&Seen::Failed(Rule::ClosedStream)));
}

#[test]
fn a_stream_that_is_cancelled_meanwhile_is_not_reported() {
    let mut run = run(3);
    let bytes = go_away(1, ErrorCode::ENHANCE_YOUR_CALM, b"");
    let mut rest = &bytes[..];
    assert!(run.client.next(&mut rest, &mut run.out).is_ok_and(|event| event.is_some()));
    run.client.cancel(3, ErrorCode::CANCEL, &mut run.out);
    run.feed(b"");
    assert_eq!(run.take(), [Seen::NotProcessed(5)]);
}

#[test]
fn a_close_of_this_client_ends_everything() {
    let mut run = run(1);
    run.client.close(ErrorCode::NO_ERROR, &mut run.out);
    run.client.close(ErrorCode::NO_ERROR, &mut run.out);
    let frames = run.frames();
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].0.kind, &frames[0].1[..]), (Kind::GOAWAY, &[0; 8][..]));
    run.feed(&[ok(1), data(99, b"nonsense", false)].concat());
    assert_eq!((run.take(), run.client.open_streams()), (Vec::new(), 1));
    let request = Request { place: 0, is_head: false, content: 0 };
    assert_eq!(run.client.start(request), Err(NotStarted::Closing));
}
