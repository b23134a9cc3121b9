use super::*;
use crate::clock::SECOND;

fn follower(length: Option<Nanos>) -> Follower {
    Follower {
        shared: Shared::new(1, 1),
        connections: 1,
        length,
        window: Mutex::new(None),
        ends_at: AtomicU64::new(Nanos::MAX),
        opens_at: AtomicU64::new(Nanos::MAX),
        late_ns: AtomicU64::new(0),
    }
}

#[test]
fn orders_and_phases_correspond() {
    let mut phases = LeaderCommand::ALL.map(|order| phase_of(Some(order))).to_vec();
    assert!(phases.is_sorted(), "{phases:?}");
    phases.dedup();
    assert_eq!(phases.len(), 5, "each phase but the first");
    for phase in phases {
        assert_eq!(phase_of(order_of(phase)), phase);
    }
    assert_eq!(order_of(phase_of(None)), None);
}

#[test]
fn a_window_of_a_fixed_length_ends_only_by_the_process_clock() {
    let follower = follower(Some(SECOND));
    follower.obey(LeaderCommand::WarmUp);
    follower.check(clock::now());
    follower.obey(LeaderCommand::OpenWindow);
    let (begin, _) = follower.window().unwrap();
    assert_eq!(Turns(&follower).next_check(), begin + SECOND);
    follower.obey(LeaderCommand::StopSending);
    follower.check(begin + SECOND - 1);
    assert_eq!(follower.shared.phase(), Phase::Measuring);
    follower.check(begin + SECOND);
    assert_eq!(follower.shared.phase(), Phase::Draining);
    let ended = follower.window();
    follower.obey(LeaderCommand::StopSending);
    follower.obey(LeaderCommand::End);
    assert_eq!((follower.shared.phase(), follower.window()), (Phase::Ended, ended));
}

#[test]
fn a_window_until_a_number_of_requests_ends_by_order() {
    let follower = follower(None);
    follower.obey(LeaderCommand::OpenWindow);
    follower.check(clock::now() + 1_000 * SECOND);
    assert_eq!(follower.shared.phase(), Phase::Measuring);
    follower.obey(LeaderCommand::StopSending);
    let (begin, end) = follower.window().unwrap();
    assert!(end >= begin && follower.shared.phase() == Phase::Draining);
}

#[test]
fn an_early_end_closes_the_window_and_late_orders_change_nothing() {
    let follower = follower(Some(SECOND));
    follower.obey(LeaderCommand::OpenWindow);
    follower.obey(LeaderCommand::End);
    let ended = follower.window();
    for order in LeaderCommand::ALL {
        follower.obey(order);
    }
    assert_eq!((follower.shared.phase(), follower.window()), (Phase::Ended, ended));
    assert!(follower.window().is_some_and(|(begin, end)| end - begin < SECOND));
}

#[test]
fn a_window_with_a_time_opens_at_that_time() {
    let follower = follower(Some(SECOND));
    let at = clock::now() - 5;
    follower.take(Order { order: LeaderCommand::WarmUp, at_ns: None });
    follower.take(Order { order: LeaderCommand::OpenWindow, at_ns: Some(at) });
    assert_eq!((follower.shared.phase(), Turns(&follower).next_check()), (Phase::WarmingUp, at));
    follower.check(at - 1);
    assert_eq!(follower.shared.phase(), Phase::WarmingUp);
    follower.check(at);
    let (begin, _) = follower.window().unwrap();
    assert_eq!(follower.shared.phase(), Phase::Measuring);
    assert_eq!(follower.late_ns.load(Relaxed), begin - at);
    assert_eq!(Turns(&follower).next_check(), begin + SECOND);
}

#[test]
fn a_window_with_a_time_does_not_open_after_the_end() {
    let follower = follower(Some(SECOND));
    follower.take(Order { order: LeaderCommand::OpenWindow, at_ns: Some(1) });
    follower.take(Order { order: LeaderCommand::End, at_ns: None });
    follower.check(clock::now());
    assert_eq!((follower.shared.phase(), follower.window()), (Phase::Ended, None));
}
