//! What is counted: deliveries, the last ones of broadcasts, and those that are wrong or missing.

use super::{
    compile, frames_of, options,
    room::{Room, Tolerant},
};
use crate::{
    dialect::Dialect,
    dialects::websocket::{
        WebSocketAsks,
        message::{Message, Payload},
        roster::{Fate, MAX_IN_FLIGHT},
    },
    protocol::{CompileOptions, Destination, Pushes},
    time::Nanos,
};
use regatta_record::WrongDeliveries;

/// With a connection for each request, the requests are those with which members join.
#[test]
fn a_connection_for_each_request_has_no_broadcasts() {
    let order = options(Pushes::default());
    let place = Destination { closes: true, ..order.place };
    let hub = compile(WebSocketAsks::Broadcast, &CompileOptions { place, ..order });
    assert_eq!((hub.broadcasts(), hub.wrong_deliveries()), (None, None));
}

#[test]
fn a_tolerated_wrong_delivery_is_counted_once_and_hides_nothing_else() {
    let mut room = Room::new(2);
    let [a, b, c, d] = [0, 1, 2, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b, c, d]).unwrap();
    let unsent = Payload { id: 99, ..a };
    let mut heard = Tolerant::default();
    // B is missing, A comes twice.
    room.hears(1, &[a, unsent, a, c, d], &mut heard);
    assert_eq!((heard.deliveries, heard.wrong.len()), (3, 3), "{:?}", heard.wrong);
    let mut missing = Vec::new();
    room.hub.missing(&mut heard, &mut |deliveries, _| missing.push(deliveries));
    assert_eq!(missing, [1]);
    let counted = WrongDeliveries { missing: 1, twice: 1, out_of_order: 1, unsent: 1 };
    assert_eq!(room.hub.wrong_deliveries(), Some(counted));
}

#[test]
fn copies_of_a_broadcast_of_which_nothing_is_known_are_counted_apart() {
    let mut room = Room::new(3);
    let a = room.begin(0);
    room.get(0, &[a]).unwrap();
    room.gap(2);
    room.is_unknown(a);
    let (hub, talk) = (&room.hub, &mut room.talks[0]);
    assert_eq!((hub.next_refused(talk), hub.next_refused(talk)), (Some(0), None));
    assert_eq!(hub.losses.counted().unknown_deliveries, 1);
    room.get(1, &[a]).unwrap();
    let counted = room.hub.losses.counted();
    assert_eq!((counted.unknown, counted.unknown_deliveries, counted.missed), (1, 2, 0));
}

#[test]
fn a_broadcast_that_a_gap_took_from_a_member_has_no_last_delivery_without_its_copy() {
    let mut room = Room::new(3);
    let a = room.send(0);
    assert_eq!(room.get(0, &[a]), Ok(vec![false]));
    room.gap(1);
    assert_eq!(room.get(2, &[a]), Ok(vec![false]), "a member has not got it");
    assert_eq!(room.hub.losses.counted().missed, 1);
    assert_eq!(room.get(1, &[a]), Ok(vec![true]), "its copy came after the gap");
    assert_eq!(room.hub.losses.counted().missed, 0);
}

/// The first member sends a broadcast, whose result does not matter.
fn sends(room: &mut Room, at: Nanos) -> Option<Payload> {
    let payload = room.ask(0, at);
    room.talks[0].asked.clear();
    payload
}

/// One member gets nothing. More are sent than can be followed at a time.
#[test]
fn what_is_given_up_is_missing_and_counted_once() {
    const MORE: u64 = 100;
    for tolerates in [false, true] {
        let mut room = Room::with(2, Pushes { tolerates, ..Pushes::default() });
        let mut all = Vec::new();
        for at in 0..MAX_IN_FLIGHT as u64 + MORE {
            let Some(payload) = sends(&mut room, at) else { break };
            room.get(0, &[payload]).unwrap();
            all.push(payload);
        }
        let mut heard = Tolerant::default();
        let (first, last) = (all[0], all[all.len() - 1]);
        let copy = frames_of(None, &[Message::Broadcast(last).text()], &[]);
        if !tolerates {
            let wrong = room.receive(0, &copy, 0, &mut ()).unwrap_err();
            assert!(wrong.expected.contains("too many of which are missing"), "{wrong:?}");
            assert_eq!(room.hub.wrong.counted().missing, 1);
            continue;
        }
        // The copy itself comes for the second time.
        room.receive(0, &copy, 0, &mut heard).unwrap();
        assert_eq!((heard.wrong.len() as u64, heard.missing), (MORE + 1, [MORE; 2]));
        // What comes after it was given up is late, and the rest is still owed.
        room.hears(1, &[first, last], &mut heard);
        let counted = WrongDeliveries {
            missing: MORE,
            twice: 1,
            out_of_order: 1,
            ..WrongDeliveries::default()
        };
        assert_eq!((room.hub.wrong.counted(), heard.deliveries), (counted, 1));
        let rest = MAX_IN_FLIGHT as u64 - 1;
        assert_eq!(room.hub.undelivered(&mut room.talks[1], &mut heard), rest);
        assert_eq!((room.hub.owes(), heard.missing), (false, [MORE + rest; 2]));
    }
}

#[test]
fn a_broadcast_lacks_one_last_delivery_however_many_members_lack_it() {
    for tolerates in [false, true] {
        let mut room = Room::with(10, Pushes { tolerates, ..Pushes::default() });
        // Nobody gets the first one, and all but two members get the second one.
        let [_, b, c] = [0, 1, 2].map(|sender| room.begin(sender));
        (0..10).for_each(|member| assert!(room.get(member, &[c]).is_ok()));
        (0..8).for_each(|member| assert!(room.get(member, &[b]).is_ok()));
        let (hub, mut heard) = (&room.hub, Tolerant::default());
        // Both are lost, and the others lack theirs at the end.
        let lost = [8, 9].map(|member| hub.undelivered(&mut room.talks[member], &mut heard));
        assert_eq!((lost, heard.missing), ([2, 2], [4, 2]));
        let mut missing = Vec::new();
        hub.missing(&mut heard, &mut |deliveries, _| missing.push(deliveries));
        assert_eq!((&missing[..], heard.missing), (&[8][..], [12, 2]));
        assert_eq!(hub.wrong.counted().missing, 12);
    }
}

/// While a broker is down, broadcasts have no result, and a hub may close connections for another reason.
#[test]
fn what_a_lost_connection_lacks_is_missing_only_if_it_is_published() {
    for fate in [Fate::Owed, Fate::Unknown] {
        let mut room = Room::new(2);
        let a = room.begin(0);
        room.get(0, &[a]).unwrap();
        let mut heard = Tolerant::default();
        assert_eq!(room.hub.undelivered(&mut room.talks[1], &mut heard), 0);
        assert!(!room.hub.owes(), "nobody else lacks it");
        match fate {
            Fate::Owed => room.hub.is_published(&room.talks[0], a.id, &mut heard).unwrap(),
            _ => room.is_unknown(a),
        }
        let missing = u64::from(fate == Fate::Owed);
        let counted = room.hub.wrong.counted();
        assert_eq!((heard.missing, heard.wrong.len() as u64), ([missing; 2], missing));
        assert_eq!((counted.missing, counted.total()), (missing, missing));
        room.hub.missing(&mut heard, &mut |_, exchange| panic!("{exchange:?}"));
    }
    // The result does not come.
    let mut room = Room::new(2);
    let a = room.begin(0);
    room.get(0, &[a]).unwrap();
    let (mut heard, mut all) = (Tolerant::default(), Vec::new());
    assert_eq!(room.hub.undelivered(&mut room.talks[1], &mut heard), 0);
    room.hub.missing(&mut heard, &mut |deliveries, _| all.push(deliveries));
    assert_eq!((&all[..], heard.missing), (&[1][..], [1, 1]));
}

/// A hub may close the connection of a member that is owed nothing, and delay its first reply afterwards.
#[test]
fn what_a_member_is_not_owed_while_it_is_away_is_counted() {
    let mut room = Room::with(3, Pushes::default());
    let absent = |room: &Room| room.hub.broadcasts().unwrap().absent;
    let send = |room: &mut Room| sends(room, 7).expect("it is a member");
    let all = send(&mut room);
    (0..3).for_each(|member| assert!(room.get(member, &[all]).is_ok()));
    assert_eq!((room.hub.undelivered(&mut room.talks[2], &mut ()), absent(&room)), (0, 0));
    room.hub.renew(&mut room.talks[2], 2);
    for nth in 1..=4 {
        send(&mut room);
        assert_eq!(absent(&room), nth);
    }
    // A connection that fails before it joins is away no more than before.
    assert_eq!(room.hub.undelivered(&mut room.talks[2], &mut ()), 0);
    assert_eq!(room.hub.broadcasts().unwrap().failed_joins, 1);
    room.hub.renew(&mut room.talks[2], 2);
    send(&mut room);
    assert_eq!(absent(&room), 5);
    room.talks[2].note_reply(&room.hub.roster);
    send(&mut room);
    // Nor does a member that leaves by itself.
    room.hub.leave(&mut room.talks[1]);
    room.hub.renew(&mut room.talks[1], 1);
    send(&mut room);
    assert_eq!((absent(&room), room.hub.wrong.counted().total()), (5, 0));
}
