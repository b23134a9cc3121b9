//! The number of listeners in the result of a broadcast, while connections close.

use super::{
    frames_of, options,
    room::{Room, Tolerant},
};
use crate::{
    dialect::Dialect,
    dialects::websocket::message::Message,
    protocol::{CompileOptions, Pushes},
    time::Nanos,
};
use regatta_record::Machines;

/// A member sends a broadcast, all get it, and its result has so many listeners.
fn result(room: &mut Room, [sent_at, now]: [Nanos; 2], listeners: u64, heard: &mut Tolerant) {
    let payload = room.ask(0, sent_at).expect("it is a member");
    (0..room.talks.len()).for_each(|member| room.hears(member, &[payload], heard));
    let result = frames_of(None, &[Message::Result(payload, Some(listeners)).text()], &[]);
    room.receive(0, &result, now, heard).unwrap();
}

/// Longer than the load may take to see the close of a connection.
const LATER: Nanos = 1_500_000_000;

/// A hub no longer counts a connection that it has closed, and the load may get the result before it sees the close.
#[test]
fn a_result_may_count_one_listener_fewer_for_each_connection_that_the_server_has_closed() {
    for closes in [true, false] {
        let mut room = Room::with(3, Pushes { tolerates: true, ..Pushes::default() });
        let mut heard = Tolerant::default();
        // They come together, after a pause of the load.
        result(&mut room, [0, LATER], 2, &mut heard);
        result(&mut room, [LATER, LATER], 2, &mut heard);
        assert_eq!((heard.wrong.len(), room.hub.owes()), (0, true), "one may be closed");
        if closes {
            room.hub.undelivered(&mut room.talks[2], &mut ());
        }
        assert_eq!(room.hub.owes(), !closes, "the load waits for it before it ends");
        result(&mut room, [LATER, 2 * LATER], 2, &mut heard);
        assert_eq!(heard.wrong.len(), if closes { 0 } else { 2 }, "the first ones");
        let mut missing = Vec::new();
        room.hub.missing(&mut (), &mut |_, exchange| missing.push(exchange.expected));
        let few = missing.iter().filter(|one| one.starts_with("a listenerCount from 3")).count();
        assert_eq!(few, usize::from(!closes), "the last one: {missing:?}");
        let wrong_results = room.hub.broadcasts().unwrap().wrong_results;
        assert_eq!(wrong_results, if closes { 0 } else { 3 }, "they were taken for right ones");
    }
}

#[test]
fn a_close_that_the_load_sees_later_is_no_lack_of_members_on_other_machines() {
    let machines = Machines {
        own: 0,
        of_thread: vec![0, 0, 1],
        members: vec![2, 3],
        ahead_ns: vec![0, 0],
        shift_ns: 0,
        key: 7,
    };
    for closes in [true, false] {
        let order = CompileOptions { machines: Some(&machines), ..options(Pushes::default()) };
        let mut room = Room::compiled(0..2, &order);
        let short_by = |room: &Room| room.hub.across().unwrap().short_by;
        let mut heard = Tolerant::default();
        result(&mut room, [0, 0], 4, &mut heard);
        assert_eq!(short_by(&room), 0);
        if closes {
            room.hub.undelivered(&mut room.talks[1], &mut ());
        }
        result(&mut room, [LATER, LATER], if closes { 4 } else { 5 }, &mut heard);
        assert_eq!((short_by(&room), heard.wrong.len()), (u64::from(!closes), 0));
    }
}
