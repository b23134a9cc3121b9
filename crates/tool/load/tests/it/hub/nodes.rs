//! The load on a hub with several nodes: one order of all broadcasts, and losses that the hub announces.

use crate::{
    common::{Server, assert_undisturbed, at, run, workload},
    hub::{
        MEMBERS, broadcasts, count,
        own::{Own, run_dialect},
        server::{Fault, serve, serve_at},
    },
};
use regatta_load::{Arrivals, Compiled, Drive, Error, Lane, Node, Plan, SliceKind, Tally, Until};
use regatta_record::{AnnouncedLosses, FailedShare, Latency, WrongDeliveries, are_many_lost};
use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

/// A load on all of these nodes.
fn on(servers: &[Server]) -> Plan {
    let node = |server: &Server| Node { target: server.address, host: server.address.to_string() };
    let nodes = servers[1..].iter().map(node).collect();
    Plan {
        nodes,
        in_one_order: true,
        timeout: Duration::from_secs(1),
        ..broadcasts(servers[0].address, workload("hub"))
    }
}

fn two(fault: Fault) -> Vec<Server> {
    serve_at(2, Own, fault, MEMBERS)
}

#[test]
fn members_of_all_nodes_share_one_roster() {
    for processes in [1, 3] {
        let servers = serve_at(3, Own, Fault::None, MEMBERS);
        let tally = run_dialect(processes, &on(&servers)).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.processes), (400, processes));
        let (all, last) = (count(&tally, "deliveries"), count(&tally, "last_deliveries"));
        assert_eq!((all, last), (400 * MEMBERS as u64, 400));
        let members: Vec<usize> =
            servers.iter().map(|server| server.accepted.load(SeqCst)).collect();
        assert_eq!(members, [3, 3, 2], "{processes} processes");
        assert_eq!(tally.announced, None);
    }
}

#[test]
fn members_that_join_and_leave_get_a_part_of_the_order() {
    let servers = two(Fault::None);
    let until = Until::Elapsed(Duration::from_secs(1));
    let tally = run(&Plan { passing: 20, threads: 2, until, ..on(&servers) }).unwrap();
    assert_undisturbed(&tally);
    assert!(tally.passed > 2, "{} passed", tally.passed);
}

#[test]
fn each_lie_between_nodes_is_found_and_named() {
    for (fault, named) in [
        (Fault::Swapped(100), "one order for all members; "),
        (Fault::LostAtNode(100), "one order for all members"),
        (Fault::Doubled(100), "each broadcast once"),
        (Fault::Reordered(100), "order"),
        (Fault::Invented(100), "only broadcasts that a member has sent"),
        (Fault::Altered(100), "only broadcasts that a member has sent"),
        // With or without a pending request.
        (Fault::Gap(100, 0), "broadcast"),
    ] {
        for processes in [1, 3] {
            let tally = run_dialect(processes, &on(&two(fault))).unwrap();
            let wrong = tally.first_wrong.clone();
            let wrong = wrong.unwrap_or_else(|| panic!("{fault:?} was not found"));
            // Processes compare times since they got their first order. One that got it late may name what
            // follows: a member that found the lie is not counted.
            let is_named = wrong.expected.contains(named)
                || processes > 1 && wrong.expected.starts_with("a listenerCount");
            assert!(is_named, "{fault:?}: {wrong:?}");
        }
    }
}

/// A hub connects to its broker for the first time when members have joined. Nothing can be lost by then.
#[test]
fn a_gap_before_the_first_broadcast_is_no_loss() {
    for allows_gaps in [false, true] {
        let servers = two(Fault::GapBeforeAll);
        let tally = run(&Plan { allows_gaps, ..on(&servers) }).unwrap();
        assert_undisturbed(&tally);
        assert_eq!(tally.announced, allows_gaps.then(AnnouncedLosses::default));
    }
}

#[test]
fn only_a_load_that_asks_for_one_order_finds_another_one() {
    let servers = two(Fault::Swapped(100));
    assert_undisturbed(&run(&Plan { in_one_order: false, ..on(&servers) }).unwrap());
    // A loss is found in any case.
    let servers = two(Fault::LostAtNode(100));
    let tally = run(&Plan { in_one_order: false, ..on(&servers) }).unwrap();
    let wrong = tally.first_wrong.clone().expect("a delivery is missing");
    assert!(wrong.received.contains("no copy for 4 of them"), "{wrong:?}");
}

fn with_gaps(fault: Fault, in_one_order: bool) -> Tally {
    let servers = two(fault);
    run_dialect(2, &Plan { allows_gaps: true, in_one_order, ..on(&servers) }).unwrap()
}

#[test]
fn announced_losses_are_counted_apart() {
    let all = 400 * MEMBERS as u64;
    let none = AnnouncedLosses::default();
    for (fault, deliveries, announced) in [
        (Fault::None, all, none),
        (Fault::Gap(100, 0), all - 1, AnnouncedLosses { gaps: 1, missed: 1, ..none }),
        // What comes behind the gap was not missed.
        (Fault::Gap(100, 1), all, AnnouncedLosses { gaps: 1, ..none }),
        (
            Fault::NotPublished(100),
            all - MEMBERS as u64,
            AnnouncedLosses { not_published: 1, ..none },
        ),
    ] {
        let tally = with_gaps(fault, true);
        assert_undisturbed(&tally);
        assert_eq!(tally.announced, Some(announced), "{fault:?}");
        assert_eq!(count(&tally, "deliveries"), deliveries, "{fault:?}");
    }
    // Its copies do not hide that those of other broadcasts are missing. Each member may get it or not, so it has no
    // place in the order.
    for in_one_order in [false, true] {
        let tally = with_gaps(Fault::Unknown(100), in_one_order);
        assert_undisturbed(&tally);
        let losses = tally.announced.expect("it permits losses");
        let expected = AnnouncedLosses { unknown: 1, unknown_deliveries: 4, ..none };
        assert_eq!((losses, tally.refused), (expected, 1));
        let certain = count(&tally, "deliveries") - losses.unknown_deliveries;
        assert_eq!(certain, all - MEMBERS as u64);
    }
}

#[test]
fn a_refused_broadcast_is_in_no_count_of_requests_and_in_no_latency() {
    for fault in [Fault::NotPublished(100), Fault::Unknown(100)] {
        for pipeline in [1, 4] {
            let servers = two(fault);
            let plan = Plan { allows_gaps: true, in_one_order: false, pipeline, ..on(&servers) };
            let tally = run_dialect(2, &plan).unwrap();
            assert_undisturbed(&tally);
            assert_eq!((tally.requests, tally.refused), (399, 1), "{fault:?}");
            assert_eq!(tally.histogram.len(), 399);
            assert_eq!(tally.replies, 399 + MEMBERS as u64, "all have joined");
            assert_eq!(tally.right_replies(), 399);
        }
    }
    // In an open loop it is one of the requests that were due.
    let rate = NonZeroU32::new(400).unwrap();
    let drive = Drive::Open { rate, arrivals: Arrivals::Constant };
    let (servers, until) = (two(Fault::NotPublished(100)), Until::Elapsed(Duration::from_secs(1)));
    let plan = Plan { allows_gaps: true, drive, until, ..on(&servers) };
    let tally = run_dialect(2, &plan).unwrap();
    assert_undisturbed(&tally);
    let open = tally.open_loop.as_ref().expect("it has a rate");
    assert_eq!((open.refused, open.unanswered()), (1, 0));
    assert_eq!(tally.histogram.len() + 1, open.due);
}

/// The load continues after a wrong delivery, on the same connection, and counts all of them.
#[test]
fn tolerated_wrong_deliveries_are_counted_by_kind() {
    let none = WrongDeliveries::default();
    for (fault, least, most) in [
        (Fault::None, none, none),
        // If the member that misses it gets the next one first, all others get that in another order. If what it
        // misses has no result by then, it may be one that not every member gets.
        (
            Fault::Lost(100),
            WrongDeliveries { missing: 1, ..none },
            WrongDeliveries { missing: 1, out_of_order: MEMBERS as u64 - 1, ..none },
        ),
        (
            Fault::Doubled(100),
            WrongDeliveries { twice: 1, ..none },
            WrongDeliveries { twice: 1, ..none },
        ),
        (
            Fault::Invented(100),
            WrongDeliveries { unsent: 1, ..none },
            WrongDeliveries { unsent: 1, ..none },
        ),
        // The two and the next one follow another broadcast than at the other members. Who gets one first decides
        // whose order is another one.
        (
            Fault::Swapped(100),
            WrongDeliveries { out_of_order: 1, ..none },
            WrongDeliveries { out_of_order: 3 * (MEMBERS as u64 - 1), ..none },
        ),
    ] {
        for allows_gaps in [true, false] {
            let servers = two(fault);
            let plan = Plan { allows_gaps, tolerates: Some(1.0), ..on(&servers) };
            let tally = run_dialect(2, &plan).unwrap();
            let counted = tally.wrong_deliveries.expect("deliveries are checked");
            let all = |wrong: WrongDeliveries| {
                [wrong.missing, wrong.twice, wrong.out_of_order, wrong.unsent]
            };
            let is_between = |n| (all(least)[n]..=all(most)[n]).contains(&all(counted)[n]);
            assert!((0..4).all(is_between), "{fault:?}: {counted:?}");
            assert_eq!(tally.first_wrong.is_some(), fault != Fault::None, "{fault:?}");
            let errors = tally.errors;
            assert_eq!(errors.wrong_reply, all(counted).iter().sum::<u64>(), "{fault:?}");
            assert_eq!(errors.total(), errors.wrong_reply, "{fault:?}: {errors:?}");
            assert_eq!(tally.connections_opened, MEMBERS as u64, "{fault:?}");
        }
    }
}

#[test]
fn copies_of_a_broadcast_that_is_not_published_are_wrong_deliveries() {
    let servers = two(Fault::PublishedAnyway(100));
    let plan = Plan { allows_gaps: true, tolerates: Some(1.0), ..on(&servers) };
    let tally = run_dialect(2, &plan).unwrap();
    // Each copy is one, whether it came before the result or after it.
    let unsent = MEMBERS as u64;
    let expected = WrongDeliveries { unsent, ..WrongDeliveries::default() };
    assert_eq!(tally.wrong_deliveries, Some(expected));
    assert_eq!(tally.errors.wrong_reply, unsent);
}

/// A hub with many members has many deliveries for each result, and each member has a reply when it joins.
#[test]
fn results_that_come_first_are_hidden_among_no_deliveries_and_no_members() {
    const MANY: usize = 1_000;
    let server = serve(Own, Fault::ResultsFirst, MANY);
    let plan = Plan {
        connections: 2,
        idle: MANY - 2,
        passing: 20,
        drive: at(10, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        tolerates: Some(1.0),
        ..broadcasts(server.address, workload("hub"))
    };
    let tally = run(&plan).unwrap();
    assert_eq!(tally.wrong_deliveries, Some(WrongDeliveries::default()));
    let (results, errors) = (tally.errors.wrong_reply, tally.errors);
    assert!((5..50).contains(&results) && errors.failed() == results, "{errors:?}");
    assert!(tally.replies >= MANY as u64 + results, "{} replies", tally.replies);
    assert!(count(&tally, "deliveries") >= results * MANY as u64, "{:?}", tally.operations);
    // None is right, although the load took each for the reply to its request.
    assert_eq!(tally.right_replies(), 0);
    let failed = tally.failed_share(tally.errors.failed(), 0);
    assert_eq!(failed, FailedShare { share: 1.0, of: "requests" });
    let wrong = tally.first_wrong.clone().expect("it is counted");
    assert!(wrong.expected.contains("own copy of the broadcast before its result"), "{wrong:?}");
}

#[test]
fn with_a_connection_for_each_request_members_only_join() {
    let server = serve(Own, Fault::None, 1);
    let plan = broadcasts(server.address, workload("hub"));
    let tally = run(&Plan { drive: Drive::Churn, tolerates: Some(0.01), ..plan }).unwrap();
    assert_undisturbed(&tally);
    assert!(tally.replies >= 400, "{}", tally.replies);
    let share = 1.0 / (1.0 + tally.replies as f64);
    assert_eq!(tally.failed_share(1, 0), FailedShare { share, of: "requests" });
}

/// Two members send, and the others listen. One of these gets nothing from some broadcast on.
fn deaf(fault: Fault, tolerates: Option<f64>) -> Tally {
    let server = serve(Own, fault, MEMBERS);
    let plan = broadcasts(server.address, workload("hub"));
    let [until, timeout] = [Duration::from_secs(1); 2];
    let (until, idle) = (Until::Elapsed(until), MEMBERS - 2);
    run(&Plan { connections: 2, idle, until, tolerates, timeout, ..plan }).unwrap()
}

#[test]
fn each_delivery_that_is_missing_is_an_error() {
    for tolerates in [None, Some(1.0)] {
        let tally = deaf(Fault::Deaf(50), tolerates);
        let counted = tally.wrong_deliveries.expect("deliveries are checked");
        let (missing, delivered) = (counted.missing, count(&tally, "deliveries"));
        let owed = missing + delivered;
        assert!(owed > 8 * 60, "{owed}");
        assert_eq!(missing, owed / MEMBERS as u64 - 50, "all from broadcast 50 on");
        assert_eq!((counted.total(), tally.errors.wrong_reply), (missing, missing));
        assert_eq!(tally.errors.total(), missing, "{:?}", tally.errors);
        assert!(tally.first_wrong.is_some());
        let failed = tally.failed_share(tally.errors.failed(), 0);
        assert_eq!((failed.share, failed.of), (missing as f64 / owed as f64, "deliveries"));
        // One of each broadcast, which has no delivery to the last member then. One may be sent after the window.
        let [deliveries, last] = &tally.operations[..] else { panic!("{:?}", tally.operations) };
        assert_eq!((deliveries.missing, last.whole_run), (last.missing, 50));
        assert!((missing - 4..=missing).contains(&last.missing), "{} of {missing}", last.missing);
        assert_eq!(last.histogram.len() + last.missing, tally.histogram.len());
    }
}

/// A hub with many members and few broadcasts: the copies of a single one are more than all broadcasts.
#[test]
fn a_broadcast_that_all_others_lack_is_one_without_a_last_delivery() {
    const MANY: usize = 200;
    let server = serve(Own, Fault::LostToOthers(20), MANY);
    let plan = Plan {
        connections: 2,
        idle: MANY - 2,
        drive: at(60, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        timeout: Duration::from_secs(1),
        tolerates: Some(1.0),
        ..broadcasts(server.address, workload("hub"))
    };
    let tally = run(&plan).unwrap();
    let counted = tally.wrong_deliveries.expect("deliveries are checked");
    assert_eq!((counted.missing, counted.total()), (MANY as u64 - 1, MANY as u64 - 1));
    let [deliveries, last] = &tally.operations[..] else { panic!("{:?}", tally.operations) };
    assert_eq!((deliveries.missing, last.missing), (MANY as u64 - 1, 1));
    let latency = Latency::of_censored(&last.histogram, last.missing);
    assert!(latency.p50.is_some() && latency.max.is_none(), "{latency:?}");
}

/// A hub that closes the connections of slow members does not get rid of what it owes them.
#[test]
fn deliveries_that_were_owed_when_the_server_closed_the_connection_are_missing() {
    for tolerates in [None, Some(1.0)] {
        let tally = deaf(Fault::Cut(20, 70), tolerates);
        let counted = tally.wrong_deliveries.expect("deliveries are checked");
        let missing = counted.missing;
        // More may have been sent until the load saw the close.
        assert!((51..200).contains(&missing), "{missing}");
        let (errors, causes, first) = (tally.errors, &tally.causes, &tally.first_wrong);
        assert_eq!(counted.total(), missing, "{counted:?} {causes:?} {first:?}");
        assert_eq!((errors.total(), errors.closed_idle), (missing, 0), "{errors:?}");
        assert_eq!(errors.closed_early + errors.read, missing, "{causes:?}");
        let is_named = |cause: &String| cause.ends_with(", with deliveries owed");
        assert!(causes.keys().all(is_named) && causes.len() == 1, "{causes:?}");
    }
}

/// A hub closes the connection of a member that is owed nothing, which is no error, and lets it wait for its reply.
#[test]
fn what_nobody_is_owed_while_a_member_is_away_is_counted() {
    for tolerates in [None, Some(0.01)] {
        let tally = deaf(Fault::SlowToJoin(50), tolerates);
        let counted = tally.wrong_deliveries.expect("deliveries are checked");
        let all = count(&tally, "last_deliveries");
        let absent = tally.broadcasts.expect("it broadcasts").absent;
        assert!(absent > 20 && absent < all, "{absent} of {all}");
        // One may have been sent until the load saw the close.
        assert!(counted.missing < 20 && counted.total() == counted.missing, "{counted:?}");
        assert_eq!(tally.errors.failed(), counted.missing, "{:?}", tally.errors);
    }
}

/// A hub closes the connections of most of its members when it owes them nothing, and lets them wait for their replies.
#[test]
fn rounds_and_lanes_know_that_most_members_were_away() {
    static NEVER: AtomicBool = AtomicBool::new(false);
    for in_slices in [false, true] {
        let server = serve(Own, Fault::Dismisses(5), MEMBERS);
        let until = Until::Elapsed(Duration::from_secs(1));
        let plan = broadcasts(server.address, workload("hub"));
        let plan = Plan { connections: 1, idle: MEMBERS - 1, until, ..plan };
        let tally = if in_slices {
            let mut lane = Lane::open(&plan, &Compiled::of(&plan).unwrap(), &NEVER).unwrap();
            let length = Duration::from_millis(300);
            (0..3).for_each(|seed| drop(lane.slice(length, SliceKind::Counted, seed)));
            lane.end().unwrap()
        } else {
            run(&plan).unwrap()
        };
        assert_eq!(tally.first_wrong, None);
        let absent = tally.broadcasts.expect("it broadcasts").absent;
        assert!(are_many_lost(absent, count(&tally, "deliveries")), "{absent}");
    }
}

#[test]
fn an_announcement_excuses_nothing_else() {
    const IN_ORDER: &str = "one order for all members";
    const ONCE: &str = "each broadcast once";
    // Found first where it was begun late, after the connections of the other process were closed because of the fault.
    const TO_ALL: &str = "a copy for each of 8 members";
    for (fault, named) in [
        // At the next one, or at the end if its result was still to come then.
        (Fault::Lost(100), [IN_ORDER, TO_ALL]),
        (Fault::Swapped(100), [IN_ORDER, TO_ALL]),
        (Fault::Doubled(100), [ONCE, TO_ALL]),
        (Fault::Gap(100, 2), [ONCE, TO_ALL]),
        (Fault::GapBetween(100), [ONCE, TO_ALL]),
        // Before the result, or after it.
        (Fault::PublishedAnyway(100), ["the result of a published broadcast", "not published"]),
    ] {
        let tally = with_gaps(fault, true);
        let wrong = tally.first_wrong.clone().unwrap_or_else(|| panic!("{fault:?} was not found"));
        assert!(named.iter().any(|words| wrong.expected.contains(words)), "{fault:?}: {wrong:?}");
        let counted = tally.wrong_deliveries.expect("deliveries are checked");
        assert_ne!(counted, WrongDeliveries::default(), "{fault:?}");
        assert!(counted.twice > 0 || named[0] != ONCE, "{fault:?}: {counted:?}");
        let is_swapped = matches!(fault, Fault::Swapped(_));
        assert!(counted.out_of_order > 0 || !is_swapped, "{fault:?}: {counted:?}");
    }
}

#[test]
fn a_load_that_cannot_have_nodes_is_refused() {
    let servers = two(Fault::None);
    let (plan, until) = (on(&servers), Until::Elapsed(Duration::from_secs(1)));
    for (plan, why) in [
        (Plan { workload: workload("hub-echo"), ..plan.clone() }, "this load runs hub-echo"),
        (Plan { workload: workload("double"), ..plan.clone() }, "this load runs double"),
        (Plan { unix: Some("/x".into()), ..plan.clone() }, "a Unix socket belongs to one"),
        (
            Plan { passing: 1, until, allows_gaps: true, ..plan.clone() },
            "members that join and leave",
        ),
        (Plan { target: plan.nodes[0].target, ..plan.clone() }, "two of them have the address"),
        (Plan { connections: 1, ..plan.clone() }, "2 nodes need at least 2 connections"),
    ] {
        let Err(Error::Plan(error)) = plan.check() else { panic!("{why}: it is accepted") };
        assert!(error.contains(why), "{error}");
    }
}
