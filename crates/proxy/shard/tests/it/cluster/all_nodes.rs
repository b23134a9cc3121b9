//! Commands for all nodes, SCAN and scripts, while slots move without the notice of the proxy.

use super::{
    Seen,
    node::{TAGS, address, slot_of},
    world::World,
};

/// Calm clusters, each with a key of each tag.
fn worlds() -> impl Iterator<Item = World> {
    (0..10).map(|seed| {
        let mut world = World::new(seed, None, false);
        for tag in 0..TAGS {
            assert_eq!(world.say(&format!("set a{{t{tag}}} x")), "+OK\r\n");
        }
        world
    })
}

/// A node that owns no slots, and a slot that another node than the first one owns.
fn spare(world: &mut World) -> usize {
    world.cluster().nodes.len() - 1
}

#[test]
fn a_slot_that_has_moved_without_notice_is_counted_and_flushed() {
    for mut world in worlds() {
        assert_eq!(world.say("dbsize"), ":6\r\n");
        let to = spare(&mut world);
        (0..TAGS).for_each(|tag| world.cluster().give(slot_of(tag), to));
        assert_eq!(world.say("dbsize"), ":6\r\n");
        let back = (0..TAGS).map(slot_of);
        back.for_each(|slot| world.cluster().give(slot, 0));
        assert_eq!(world.say("flushall"), "+OK\r\n");
        assert_eq!(world.cluster().keys(), 0);
    }
}

#[test]
fn a_flush_reaches_a_node_that_gets_its_first_slot() {
    for mut world in worlds() {
        let to = spare(&mut world);
        world.cluster().start_migration(slot_of(0), to);
        assert_eq!(world.say("flushall"), "+OK\r\n");
        assert_eq!(world.cluster().keys(), 0);
    }
}

#[test]
fn a_flush_during_which_a_slot_moves_is_not_ok() {
    for mut world in worlds() {
        world.cluster().moves_at_flush = true;
        let reply = world.say("flushall");
        if world.cluster().moves_at_flush {
            // One node had all keys.
            continue;
        }
        assert!(reply.starts_with("-SHARDMOVED slots have moved meanwhile"), "{reply}");
        assert!(world.cluster().keys() > 0);
        assert_eq!(world.say("flushall"), "+OK\r\n");
        assert_eq!(world.cluster().keys(), 0);
    }
}

#[test]
fn a_part_that_a_replica_has_refused_goes_to_its_successor() {
    let mut count = 0;
    for mut world in worlds() {
        let from =
            (0..TAGS).map(|tag| world.cluster().owner(slot_of(tag))).find(|owner| *owner > 0);
        let Some(from) = from else { continue };
        world.cluster().hand_over(from, &mut Seen::default());
        world.cluster().all_learn();
        // The node that is asked first has not heard of it.
        world.cluster().stale_reports = 1;
        let reply = world.say("flushall");
        // The slots have moved since it was sent.
        assert!(reply.starts_with("-SHARDMOVED slots have moved meanwhile"), "{reply}");
        let at_others = world.cluster().nodes.iter().enumerate().filter(|(at, _)| *at != from);
        assert_eq!(at_others.map(|(_, node)| node.keys.len()).sum::<usize>(), 0);
        count += 1;
    }
    assert!(count > 5, "{count}");
}

#[test]
fn a_scan_does_not_end_as_if_nothing_had_moved() {
    let mut count = 0;
    for mut world in worlds() {
        let slot = (0..TAGS).map(slot_of).find(|slot| world.cluster().owner(*slot) > 0);
        let Some(slot) = slot else { continue };
        let cursor = |reply: &str| reply.lines().nth(2).unwrap_or_default().to_owned();
        let mut reply = world.say("scan 0");
        assert_ne!(cursor(&reply), "0", "{reply}");
        // To the node that was scanned: it has the first slots.
        world.cluster().give(slot, 0);
        while !reply.starts_with('-') {
            let next = cursor(&reply);
            assert_ne!(next, "0", "it ends");
            reply = world.say(&format!("scan {next}"));
        }
        assert!(reply.starts_with("-SHARDMOVED "), "{reply}");
        count += 1;
    }
    assert!(count > 5, "{count}");
}

#[test]
fn an_error_that_a_script_has_made_is_passed_on() {
    for mut world in worlds() {
        let (owner, slot) = (world.cluster().owner(slot_of(0)), slot_of(0));
        let other = address((owner + 1) % 2);
        for (number, error) in [
            format!("MOVED_{slot}_{}", address(owner)),
            format!("MOVED_{slot}_{other}"),
            format!("ASK_{slot}_{other}"),
            "TRYAGAIN_later".to_owned(),
        ]
        .iter()
        .enumerate()
        {
            let reply = world.say(&format!("eval {error} 1 s{number}{{t0}}"));
            assert_eq!(reply, format!("-{}\r\n", error.replace('_', " ")));
            // It was carried out once.
            assert_eq!(world.say(&format!("get s{number}{{t0}}")), "$1\r\nx\r\n");
        }
    }
}
