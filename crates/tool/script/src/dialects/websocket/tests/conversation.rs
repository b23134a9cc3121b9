//! The whole conversation of a member, however its bytes are split.

use super::{ALL, Adapter, Counts, Member, WebSocketAsks, frames_of, hub, payloads, said};
use crate::{dialect::Dialect, dialects::websocket::message::Payload};
use proptest::prelude::*;
use regatta_proto::{
    http1::{Date, server},
    websocket::handshake::Opening,
};

/// Where the bytes of one step are split.
#[derive(Clone, Debug, Default)]
struct Cuts {
    /// Places at which the bytes are split into reads.
    reads: Vec<usize>,
    /// Places at which a stream is split into frames.
    frames: Vec<usize>,
}

/// Runs the whole conversation of a single member; `cuts` has an entry for each of its three steps. Returns the lengths
/// of what the server says in them, in bytes.
fn converse(asks: WebSocketAsks, cuts: &[Cuts; 3]) -> [usize; 3] {
    let (hub, adapter) = hub(asks);
    let mut member = Member::new(&hub);
    let mut upgrade = Vec::new();
    assert!(!hub.open(&mut member.talk, &mut &[][..], &mut upgrade).unwrap());
    let mut decoder = server::Decoder::default();
    let Some((server::Event::Request(request), _)) = decoder.decode(&upgrade) else {
        panic!("an upgrade is asked for")
    };
    let mut reply = Vec::new();
    Opening::read(&request, None).unwrap().write(request.terms, &Date::at(0), &mut reply);
    let mut reply = String::from_utf8(reply).unwrap();
    if let Some(name) = adapter.and_then(Adapter::subprotocol) {
        let offered = format!("\r\nSec-WebSocket-Protocol: {name}\r\n");
        assert!(str::from_utf8(&upgrade).unwrap().contains(&offered));
        reply = reply.replacen("\r\n", &offered, 1);
    }
    let [greeting, ..] = said(adapter, "", "");
    let opens = [reply.as_bytes(), &frames_of(adapter, &greeting, &cuts[0].frames)].concat();
    let (replies, _) = member.take_all(&opens, &cuts[0].reads);
    assert!(member.is_open && replies == 0);

    let joins = payloads(member.ask(7)).concat();
    let [_, joined, _] = said(adapter, "", &joins);
    let joined = frames_of(adapter, &joined, &cuts[1].frames);
    assert_eq!(member.take_all(&joined, &cuts[1].reads).0, 1, "{asks:?}: the member has joined");
    assert_eq!(member.counts, Counts::default());
    let all_joins = || hub.broadcasts().unwrap().joins;
    assert_eq!(all_joins(), 1, "{asks:?}: it is a reply to no broadcast");

    let asked = payloads(member.ask(9)).concat();
    let own = Payload { sender: 0, id: 0, at: 9 }.digits();
    let own = str::from_utf8(&own).unwrap();
    assert!(asked.contains(own), "{asked}");
    let [_, _, done] = said(adapter, &format!("\"{own}\""), &joins);
    let done = frames_of(adapter, &done, &cuts[2].frames);
    let (replies, answered) = member.take_all(&done, &cuts[2].reads);
    assert_eq!((replies, all_joins()), (1, 1), "{asks:?}: the broadcast is done");
    assert_eq!(member.counts, Counts { deliveries: 1, last: 1 }, "{asks:?}");
    assert!(!hub.owes() && member.cursor.owed() == 0);
    let answer = match adapter {
        Some(Adapter::Centrifuge) => vec!["{}"],
        Some(Adapter::Nats) => vec!["PONG\r\n"],
        _ => vec![],
    };
    assert_eq!(payloads(answered), answer, "{asks:?}");
    [opens.len(), joined.len(), done.len()]
}

#[test]
fn one_split_anywhere_changes_nothing() {
    for asks in ALL {
        let lengths = converse(asks, &Default::default());
        for (step, length) in lengths.into_iter().enumerate() {
            for cut in 0..=length {
                let mut cuts: [Cuts; 3] = Default::default();
                cuts[step].reads = vec![cut];
                converse(asks, &cuts);
                if asks == WebSocketAsks::Through(Adapter::Nats) {
                    cuts[step] = Cuts { reads: vec![], frames: vec![cut] };
                    converse(asks, &cuts);
                }
            }
        }
    }
}

#[test]
fn one_byte_at_a_time_changes_nothing() {
    let each = Cuts { reads: (0..300).collect(), frames: (0..300).collect() };
    for asks in ALL {
        converse(asks, &[each.clone(), each.clone(), each.clone()]);
    }
}

proptest! {
    #[test]
    fn any_splits_change_nothing(
        reads in prop::collection::vec(prop::collection::vec(0..300_usize, 0..9), 3),
        framed in prop::collection::vec(prop::collection::vec(0..300_usize, 0..5), 3),
    ) {
        let cuts = |i: usize| Cuts { reads: reads[i].clone(), frames: framed[i].clone() };
        for asks in ALL {
            converse(asks, &[cuts(0), cuts(1), cuts(2)]);
        }
    }
}
