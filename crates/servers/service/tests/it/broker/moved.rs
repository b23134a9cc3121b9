//! Announcements of hubs that have moved to another server: a gap for the members of the others, but not more than one in
//! a second.

use super::one_hub::{World, announcements};
use std::sync::atomic::Ordering::SeqCst;

/// A line about others that have moved.
const MOVED: &str = "another hub comes from another server";

#[test]
fn announcements_of_others_cause_at_most_one_gap_in_a_second_and_none_is_lost() {
    let mut world = World::new("notes");
    world.publishes(0, "0000000000000007:1");
    world.passes(1);
    assert_eq!((world.gaps(), world.lines(MOVED)), (1, 1), "the first one at once");
    // A hub that moves inside the second.
    world.publishes(0, "0000000000000008:1");
    world.passes(900);
    assert_eq!(world.gaps(), 0);
    world.passes(101);
    assert_eq!((world.gaps(), world.lines(MOVED)), (1, 2), "at the end of the second");
    world.passes(5000);
    assert_eq!(world.gaps(), 0, "once");
    // Somebody publishes as much as he can.
    for _ in 0..5000 {
        (0..10).for_each(|_| world.publishes(0, "1:1"));
        world.passes(1);
    }
    world.passes(1001);
    assert_eq!((world.gaps(), world.lines(MOVED)), (6, 8));
    assert!(world.link.is_some_and(|(_, _, number)| number == 1), "it was never lost");
}

#[test]
fn the_gap_of_a_new_connection_is_also_that_of_announcements_before_it() {
    let mut world = World::new("new");
    (0..2).for_each(|_| world.publishes(0, "7:1"));
    world.passes(1);
    assert_eq!(world.gaps(), 1);
    world.cuts();
    world.passes(700);
    assert_eq!((world.gaps(), world.lines(MOVED)), (1, 1), "it is connected again");
    world.passes(3000);
    assert_eq!((world.gaps(), world.lines(MOVED)), (0, 1));
}

#[test]
fn a_late_announcement_of_an_earlier_connection_does_not_end_the_duty_to_announce() {
    let mut world = World::new("late");
    let count = |world: &World| announcements(&world.written).len();
    assert_eq!(count(&world), 0);
    world.place.0.store(1, SeqCst);
    world.are_lost = true;
    world.cuts();
    while count(&world) == 0 {
        world.passes(1);
    }
    // The broker reads one of an earlier connection now.
    world.publishes(1, "0000000000000002:0");
    world.passes(1);
    world.are_lost = false;
    world.cuts();
    world.passes(900);
    assert_eq!(count(&world), 2, "at the same server, because the first one was lost");
    world.cuts();
    world.passes(900);
    assert_eq!(count(&world), 2, "its second announcement was received");
}

/// A master that was stopped passes on, after a failover, what it had not passed on to its replica.
#[test]
fn a_message_that_comes_again_or_was_overtaken_is_not_delivered() {
    let mut world = World::of("again", true);
    // With the place that it has in a history which this hub does not keep, or without one.
    let header =
        |number: u8| if number.is_multiple_of(2) { "\x025 00000000000000ff 5 300 " } else { "" };
    let publishes = |world: &mut World, server, hub: u8, number: u8| {
        let mut message = header(number).as_bytes().to_vec();
        message.extend([1, 0, hub, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(format!("{hub}{number}").into_bytes());
        // The room without a name.
        world.publishes_in(server, "{x}:room:37", &message);
    };
    for (hub, number) in [(8, 1), (8, 2), (9, 1), (8, 4)] {
        publishes(&mut world, 0, hub, number);
    }
    world.passes(1);
    let payloads = |texts: Vec<String>| {
        let of =
            |text: &String| text.split(r#""payload":"#).nth(1).map(|rest| rest[..2].to_owned());
        texts.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(payloads(world.texts()), ["81", "82", "91", "84"]);
    world.place.0.store(1, SeqCst);
    world.cuts();
    world.passes(900);
    assert_eq!(world.gaps(), 1, "it is at the other server");
    for (hub, number) in [(8, 5), (8, 4), (8, 3), (9, 1), (8, 5), (9, 2)] {
        publishes(&mut world, 1, hub, number);
    }
    world.passes(1);
    assert_eq!(payloads(world.texts()), ["85", "92"]);
}
