//! A load on three hubs at one broker. The full tier does the same with 3,000 members.

use crate::support::hubs::{Hubs, Shape};
use regatta_testkit::machine;

const SHAPE: Shape = Shape { members: 30, rate: "50/s", length: "5s" };

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn members_at_all_hubs_get_all_broadcasts_in_one_order() {
    let _turn = machine::shared();
    let outcome = Hubs::start().load(SHAPE, |_| {});
    assert_eq!(
        (outcome.gaps, outcome.missed, outcome.not_published, outcome.unknown),
        (0, 0, 0, 0)
    );
    assert_eq!(outcome.deliveries, outcome.published * SHAPE.members);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn what_is_lost_with_the_broker_is_counted_apart() {
    let _turn = machine::shared();
    let outcome = Hubs::start().load(SHAPE, |hubs| {
        hubs.broker.kill();
        hubs.see_the_broker(false);
        hubs.broker.revive();
        hubs.see_the_broker(true);
        hubs.deliver(10 * SHAPE.members);
    });
    assert_eq!(outcome.gaps, SHAPE.members, "{outcome:?}");
    assert!(outcome.not_published > 0 && outcome.deliveries > 0, "{outcome:?}");
}
