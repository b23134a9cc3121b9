//! The orders in which members get broadcasts: one for all, and that of each sender.

use super::room::{Room, Tolerant};
use regatta_record::WrongDeliveries;

#[test]
fn copies_after_a_gap_keep_the_order_of_all_and_of_their_sender() {
    let mut room = Room::new(2);
    let [a, b, c] = [0, 1, 0].map(|sender| room.send(sender));
    room.gap(0);
    room.gap(1);
    room.get(0, &[a, b, c]).unwrap();
    let wrong = room.get(1, &[b, a]).unwrap_err();
    assert!(
        wrong.contains("one order for all members; other members got this one before"),
        "{wrong}"
    );
    let mut room = Room::new(2);
    let [a, b, c] = [0, 1, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b, c]).unwrap();
    room.gap(1);
    let wrong = room.get(1, &[a, c]).unwrap_err();
    assert!(wrong.contains("one order for all members; another member"), "{wrong}");
    let mut room = Room::new(1);
    let [a, _, c] = [0, 1, 0].map(|sender| room.send(sender));
    room.gap(0);
    let wrong = room.get(0, &[c, a]).unwrap_err();
    assert!(wrong.contains("the broadcasts of one sender in order"), "{wrong}");
}

#[test]
fn a_gap_that_loses_nothing_hides_no_other_order() {
    let mut room = Room::new(2);
    let [a, b, c] = [0, 1, 2].map(|sender| room.send(sender));
    room.get(0, &[a, b, c]).unwrap();
    room.get(1, &[a]).unwrap();
    room.get(1, &[b, c]).unwrap();
    (0..2).for_each(|member| room.gap(member));
    let [d, e] = [0, 1].map(|sender| room.send(sender));
    room.get(0, &[d, e]).unwrap();
    let wrong = room.get(1, &[e]).unwrap_err();
    assert!(wrong.contains("one order for all members; another member"), "{wrong}");
}

#[test]
fn a_gap_that_loses_something_hides_no_reversed_order_after_it() {
    for reversed in [[1, 0], [2, 0], [2, 1]] {
        let mut room = Room::new(2);
        room.send(0);
        (0..2).for_each(|member| room.gap(member));
        let all = [0, 1, 2].map(|sender| room.send(sender));
        room.get(0, &all).unwrap();
        let reversed = reversed.map(|at: usize| all[at]);
        let wrong = room.get(1, &reversed).unwrap_err();
        assert!(wrong.contains("one order for all members"), "{wrong}");
    }
}

/// One member gets A and B, another one B, a gap, and A. Neither has anything directly before A or B to compare.
#[test]
fn a_gap_between_hides_no_reversed_order() {
    for gap_first in [false, true] {
        let mut room = Room::new(3);
        room.send(0);
        room.gap(1);
        let [a, b] = [0, 1].map(|sender| room.send(sender));
        let in_order = |room: &mut Room| {
            room.gap(0);
            room.get(0, &[a, b])
        };
        let reversed = |room: &mut Room| {
            room.get(1, &[b]).unwrap();
            room.gap(1);
            room.get(1, &[a])
        };
        let wrong = match gap_first {
            false => {
                in_order(&mut room).unwrap();
                reversed(&mut room).unwrap_err()
            }
            true => {
                reversed(&mut room).unwrap();
                in_order(&mut room).unwrap_err()
            }
        };
        let named = if gap_first { "this one, a gap, and then" } else { "got this one before" };
        assert!(wrong.contains("one order for all members") && wrong.contains(named), "{wrong}");
        assert_eq!(room.hub.wrong.counted().out_of_order, 1);
    }
}

/// A member may get a broadcast whose result says that it is unknown, or not, and at any time.
#[test]
fn what_may_not_be_published_is_in_no_order() {
    // The result comes after the copies, or before some of them.
    for known_first in [false, true] {
        let mut room = Room::new(3);
        let a = room.send(0);
        let x = room.begin(1);
        let b = room.send(0);
        room.get(0, &[a, x, b]).unwrap();
        if known_first {
            room.is_unknown(x);
        }
        room.get(1, &[a, b]).unwrap();
        if !known_first {
            room.is_unknown(x);
        }
        room.get(2, &[a, b, x]).unwrap();
        let [c, d] = [0, 1].map(|sender| room.send(sender));
        (0..3).for_each(|member| assert!(room.get(member, &[c, d]).is_ok()));
        assert_eq!(room.hub.wrong.counted(), WrongDeliveries::default());
    }
}

#[test]
fn what_may_not_be_published_hides_no_other_order_of_the_rest() {
    // The order of the others, with what is unknown between any two of them, or will be.
    for reversed in [[1, 0, 2], [0, 2, 1], [2, 1, 0]] {
        for results in ["have come", "have come, except those of the unknown ones", "will come"] {
            let mut room = Room::new(4);
            // Of several senders, so that only the order of all is wrong.
            let sent = [0, 1, 2].map(|sender| match results {
                "will come" => [room.begin(sender), room.begin(3)],
                _ => [room.send(sender), room.begin(3)],
            });
            room.get(0, &sent.concat()).unwrap();
            if results == "have come" {
                sent.iter().for_each(|[_, unknown]| room.is_unknown(*unknown));
            }
            let reversed = reversed.map(|at: usize| sent[at][0]);
            let wrong = room.get(1, &reversed).unwrap_err();
            assert!(wrong.contains("one order for all members"), "{wrong}");
        }
    }
}

#[test]
fn a_delivery_in_two_wrong_orders_is_counted_once() {
    let mut room = Room::new(2);
    let [a, b] = [0, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b]).unwrap();
    let mut heard = Tolerant::default();
    // B comes too early in the order of all, and A too late in that of all and of its sender.
    room.hears(1, &[b, a], &mut heard);
    let counted = WrongDeliveries { out_of_order: 2, ..WrongDeliveries::default() };
    assert_eq!((room.hub.wrong.counted(), heard.wrong.len(), heard.deliveries), (counted, 2, 2));
    // The same after a gap.
    let mut room = Room::new(2);
    let [a, b] = [0, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b]).unwrap();
    room.gap(1);
    room.hears(1, &[b, a], &mut heard);
    let counted = WrongDeliveries { out_of_order: 1, ..WrongDeliveries::default() };
    assert_eq!((room.hub.wrong.counted(), heard.wrong.len(), heard.deliveries), (counted, 3, 4));
}
