//! Slow clients do not send in step.

use crate::common::slow::{EVERY, bytes_sent, ms};
use regatta_script::dialects::http::SlowPart;
use regatta_testkit::machine;

#[test]
fn bytes_are_sent_one_at_a_time_and_not_in_bursts() {
    let _alone = machine::alone();
    for part in [SlowPart::Headers, SlowPart::Body] {
        let seen = bytes_sent(part);
        let spread = seen[9].0.duration_since(seen[0].0);
        assert!(spread >= ms(EVERY / 2), "the first bytes lie {spread:?} apart");
    }
}
