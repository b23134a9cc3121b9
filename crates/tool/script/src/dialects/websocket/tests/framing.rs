//! Frames: whole or not, of the right type or not, and those that keep a connection alive.

use super::{ALL, Adapter, Member, WebSocketAsks, frames_of, hub, payloads, said};
use crate::{dialect::Dialect, dialects::websocket::frames};
use proptest::prelude::*;
use regatta_proto::websocket::Frame;

proptest! {
    #[test]
    fn the_fast_path_finds_complete_frames_only(payload: Vec<u8>, cut: usize) {
        let mut frame = Vec::new();
        Frame::binary(&payload).write(&mut frame);
        let whole = Some((&payload[..], frame.len()));
        prop_assert_eq!(frames::whole(frames::BINARY, &frame), whole);
        prop_assert_eq!(frames::whole(frames::TEXT, &frame), None);
        let cut = cut % frame.len();
        prop_assert_eq!(frames::whole(frames::BINARY, &frame[..cut]), None);
        prop_assert!(frames::may_become_whole(frames::BINARY, &frame[..cut]));
        prop_assert_eq!(frames::may_become_whole(frames::TEXT, &frame[..cut]), cut == 0);
    }
}

#[test]
fn a_silent_phoenix_member_sends_heartbeats_although_nothing_arrives() {
    const SECOND: u64 = 1_000_000_000;
    let (hub, adapter) = hub(WebSocketAsks::Through(Adapter::Phoenix));
    assert!(hub.keeps_alive());
    let mut member = Member::opened(&hub);
    member.ask(0);
    member.receive(&frames_of(adapter, &said(adapter, "", "")[1], &[]), SECOND).unwrap();
    let mut sent_at = Vec::new();
    for now in (0..100).step_by(2) {
        let mut out = Vec::new();
        hub.keep_alive(&mut member.talk, now * SECOND);
        hub.asides(&mut member.talk, &mut out);
        let sent = payloads(out);
        assert!(sent.iter().all(|text| text == Adapter::Phoenix.heartbeat().unwrap()), "{sent:?}");
        sent_at.extend(sent.iter().map(|_| now));
    }
    assert_eq!(sent_at, [26, 52, 78], "at least every half minute");
    hub.say_goodbye(&mut member.talk, &mut Vec::new());
    hub.keep_alive(&mut member.talk, 200 * SECOND);
    let mut out = Vec::new();
    hub.asides(&mut member.talk, &mut out);
    assert!(out.is_empty(), "nothing follows a Close frame");
}

#[test]
fn a_part_of_a_frame_is_unfinished() {
    // Returns the length of a reply, and whether so many bytes of it are unfinished.
    let after = |asks: WebSocketAsks, cut: usize| {
        let (hub, adapter) = hub(asks);
        let mut member = Member::opened(&hub);
        let joins = payloads(member.ask(0)).concat();
        let joined = frames_of(adapter, &said(adapter, "", &joins)[1], &[]);
        member.receive(&joined[..cut.min(joined.len())], 0).unwrap();
        (joined.len(), hub.unfinished(&member.cursor, &member.talk).is_some())
    };
    for asks in ALL {
        let (length, is_unfinished) = after(asks, usize::MAX);
        assert!(!is_unfinished, "{asks:?}: it is whole");
        for cut in 0..length {
            assert_eq!(after(asks, cut).1, cut > 0, "{asks:?}: {cut} of {length} bytes");
        }
    }
    let (hub, _) = hub(WebSocketAsks::Broadcast);
    let mut member = Member::opened(&hub);
    // A text message in several frames: FIN is not set.
    member.receive(b"\x01\x02ab", 0).unwrap();
    let part = hub.unfinished(&member.cursor, &member.talk).expect("the last frame is missing");
    assert_eq!(part.received, "part of a frame");
}

#[test]
fn a_message_in_a_frame_of_the_other_type_is_wrong() {
    let expected_instead_of = |frame: Frame<'_>, asks: WebSocketAsks| {
        let (hub, _) = hub(asks);
        let mut member = Member::opened(&hub);
        member.ask(0);
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        member.receive(&bytes, 0).unwrap_err().expected
    };
    let expected = expected_instead_of(Frame::binary(b"{}"), WebSocketAsks::Broadcast);
    assert_eq!(expected, "a text message, not a binary one");
    let nats = WebSocketAsks::Through(Adapter::Nats);
    let expected = expected_instead_of(Frame::text(b"PONG\r\n"), nats);
    assert_eq!(expected, "a binary message, not a text one");
}
