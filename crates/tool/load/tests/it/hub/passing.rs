//! Members that join and leave while others broadcast.

use crate::{
    common::{assert_undisturbed, at, bounded, plan, run, workload},
    hub::{
        MEMBERS,
        adapters::{ALL, Named, through},
        count,
        own::{Own, run_dialect},
        server::{Fault, serve, serve_passing},
    },
};
use regatta_load::{Arrivals, Drive, Error, Plan, Until, WarmUp};
use regatta_record::Exchange;
use std::{net::SocketAddr, time::Duration};

/// Number of members that join and leave, at a time.
const PASSING: usize = 60;

fn passing(address: SocketAddr, seconds: u64) -> Plan {
    Plan {
        connections: MEMBERS,
        passing: PASSING,
        drive: bounded(4),
        until: Until::Elapsed(Duration::from_secs(seconds)),
        workload: workload("hub"),
        ..plan(address)
    }
}

#[test]
fn hundreds_join_and_leave_and_every_member_gets_its_messages() {
    for threads in [1, 3] {
        let server = serve(Own, Fault::None, MEMBERS);
        let tally = run(&Plan { threads, ..passing(server.address, 2) }).unwrap();
        assert_undisturbed(&tally);
        let passed = tally.passed;
        // Each stays for a second on average: 100 on an idle machine.
        assert!(passed > 20 && passed < 6 * PASSING as u64, "{passed} joined and left");
        assert_eq!(tally.connections_opened, MEMBERS as u64, "members that stay");
        let (all, last) = (count(&tally, "deliveries"), count(&tally, "last_deliveries"));
        // The first request of each member is an echo, including members that were present at the end.
        let echoes = tally.replies - last;
        let least = MEMBERS as u64 + passed;
        assert!(echoes >= least && echoes <= least + PASSING as u64, "{echoes}, {passed}");
        let each = all / last;
        assert!(each >= MEMBERS as u64 && each <= (MEMBERS + PASSING) as u64, "{all} of {last}");
    }
}

#[test]
fn members_join_and_leave_in_open_loop_and_in_every_process() {
    let server = serve(Own, Fault::None, MEMBERS);
    let drives = [at(300, Arrivals::Poisson), Drive::Closed];
    for (drive, processes) in drives.into_iter().zip([1, 3]) {
        let tally = run_dialect(processes, &Plan { drive, ..passing(server.address, 2) }).unwrap();
        assert_undisturbed(&tally);
        assert_eq!(tally.processes, processes);
        assert!(tally.passed > PASSING as u64 / 2, "{} joined and left", tally.passed);
        assert!(count(&tally, "deliveries") > MEMBERS as u64 * count(&tally, "last_deliveries"));
    }
}

#[test]
fn first_replies_of_members_that_join_are_no_requests_of_a_warm_up() {
    for processes in [1, 3] {
        let server = serve(Own, Fault::None, MEMBERS);
        let (drive, warm_up) = (at(10, Arrivals::Constant), WarmUp::Fixed(Duration::from_secs(2)));
        let plan = Plan { drive, warm_up, ..passing(server.address, 1) };
        let tally = run_dialect(processes, &plan).unwrap();
        assert_undisturbed(&tally);
        // 20 broadcasts, and all members that joined meanwhile.
        let (requests, passed) = (tally.warm_up_requests, tally.passed);
        assert!((1..=25).contains(&requests) && passed > 25, "{requests}, {passed} joined");
    }
}

#[test]
fn members_join_and_leave_through_each_adapter() {
    for Named { name, hub, .. } in ALL {
        let server = hub(Fault::None);
        let plan = Plan { workload: through(name), ..passing(server.address, 1) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert!(tally.passed > 0, "{name}");
        assert!(count(&tally, "deliveries") > 0, "{name}");
    }
}

/// Checks that an error of the server is found while members join and leave. The run ends when it is found.
fn finds(fault: Fault, seconds: u64, expected: &str, received: &str) {
    let wrong = found(fault, seconds);
    assert!(wrong.expected.contains(expected), "{fault:?}: {wrong:?}");
    assert!(wrong.received.contains(received), "{fault:?}: {wrong:?}");
}

/// Checks that a lost copy is found: when its member leaves, at the end, or when too many later ones have come.
fn finds_lost(fault: Fault) {
    let Exchange { expected, received, .. } = found(fault, 10);
    let at_end = expected.contains("a copy for each of ") && received.contains("no copy for ");
    let early = expected.contains("copies of earlier broadcasts, too many of which are missing");
    assert!(at_end || early, "{fault:?}: expected {expected}, received {received}");
}

fn found(fault: Fault, seconds: u64) -> Exchange {
    let server = serve_passing(Own, fault, MEMBERS);
    let timeout = Duration::from_secs(2);
    let tally = run(&Plan { timeout, ..passing(server.address, seconds) }).unwrap();
    assert!(tally.passed > 0, "{fault:?}");
    tally.first_wrong.clone().unwrap_or_else(|| panic!("{fault:?} was not found"))
}

/// Errors while members join and leave are found and named.
mod errors {
    use super::{Fault, finds, finds_lost};

    #[test]
    fn a_lost_delivery() {
        finds_lost(Fault::Lost(300));
    }

    #[test]
    fn a_lost_delivery_to_a_newcomer() {
        finds_lost(Fault::LostToNewcomer(50));
    }

    #[test]
    fn a_doubled_delivery() {
        finds(Fault::Doubled(300), 10, "each broadcast once", "");
    }

    #[test]
    fn a_doubled_delivery_to_a_newcomer() {
        finds(Fault::DoubledToNewcomer(300), 10, "each broadcast once", "");
    }

    #[test]
    fn reordered_deliveries() {
        finds(Fault::Reordered(300), 10, "in order", "");
    }

    #[test]
    fn a_count_of_half_of_the_members() {
        finds(Fault::CountsHalf(300), 10, "a listenerCount from ", "");
    }

    /// A server may count members that have left, for a while.
    #[test]
    fn a_count_of_members_that_have_left() {
        finds(Fault::CountsAll, 20, "a listenerCount from ", "");
    }
}

#[test]
fn a_close_frame_without_an_answer_is_an_error() {
    let server = serve(Own, Fault::Rude, MEMBERS);
    let timeout = Duration::from_secs(1);
    let tally = run(&Plan { timeout, ..passing(server.address, 2) }).unwrap();
    assert_eq!(tally.first_wrong, None);
    let (errors, causes) = (tally.errors, &tally.causes);
    assert_eq!(errors.closed_early + errors.timeout, errors.total(), "{causes:?}");
    let count = |named: &str| causes.get(named).copied().unwrap_or_default();
    let ended = count("the server closed the connection and did not answer a Close frame");
    let silent = count("no answer to a Close frame within 1s");
    assert_eq!((ended, silent), (errors.closed_early, errors.timeout), "{causes:?}");
    assert!(ended > 0 && silent > 0 && tally.passed > ended, "{causes:?}, {}", tally.passed);
}

#[test]
fn members_that_join_and_leave_need_pushed_messages_and_a_duration() {
    let valid = passing(([127, 0, 0, 1], 1).into(), 1);
    let plans = [
        (Plan { workload: workload("double"), ..valid.clone() }, "this load runs double"),
        (Plan { until: Until::Requests(9), ..valid.clone() }, "a load with a duration"),
        (Plan { drive: Drive::Churn, ..valid }, "members that stay"),
    ];
    for (refused, expected) in plans {
        match run(&refused) {
            Err(Error::Plan(why)) => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
