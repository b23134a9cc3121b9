//! What a contender's processes took, and whether that can be all that its work takes.

use regatta_record::{LoadShape, Operation, Round, UsageSource};

/// A cost below this part of the null server's, at one request at a time on a connection, is no cost
/// of the work.
///
/// The null server receives and sends the same bytes and does nothing else. An honest contender may
/// still be cheaper: it can wait less often (a busy server finds several connections ready at once,
/// while the null server is woken for each request), and it can make fewer system calls (io_uring).
/// What it cannot save is the work of TCP on the bytes that it receives and sends, which on loopback
/// includes the delivery to the other end (`tcp_sendmsg` runs the receiver's softirq). In all races
/// of this project's contenders the lowest ratio to the null server was 0.58. A null server that is
/// woken for each request costs up to 17 µs, and a receive and a send some 2 µs, so 0.12 is what
/// perfect batching could reach. With several requests in flight on a connection it may also take up
/// to all of them with one receive and one send, so the limit is divided by their number.
pub const FLOOR: f64 = 0.1;

/// CPU that a control group, or a process that waits for its children, may not have seen yet at an
/// edge of a window: two scheduler ticks of 10 ms.
const UNSEEN_NS: f64 = 20e6;

/// What a round took, and for how much work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// CPU of the contender's processes, nanoseconds.
    pub cpu_ns: f64,
    /// Operations that costs are per.
    pub operations: f64,
    /// How much more it may have been, by how it was read, nanoseconds.
    pub unseen_ns: f64,
}

impl Took {
    /// `None` where the contender was not observed, or did nothing.
    pub fn of(round: &Round, per: &Operation) -> Option<Took> {
        let server = round.server.as_ref()?;
        let unseen_ns = match server.source {
            UsageSource::ProcessClocks => 0.0,
            UsageSource::CgroupV2 | UsageSource::CgroupV1 | UsageSource::ProcessTree => UNSEEN_NS,
        };
        let operations = round.count_of(per) as f64;
        (operations > 0.0).then_some(Took { cpu_ns: server.cpu_ns as f64, operations, unseen_ns })
    }
}

/// What a contender took as a part of what the null server would have taken for the same work in the
/// same rounds, if that is too little to be all: below [`FLOOR`] over the requests in flight on a
/// connection, even with what was not seen yet. `None` without common rounds.
pub fn below_floor(own: &[Option<Took>], null: &[Option<Took>], load: &LoadShape) -> Option<f64> {
    let (mut seen, mut at_most, mut floor) = (0.0, 0.0, 0.0);
    for (own, null) in own.iter().zip(null).filter_map(|(own, null)| Some(((*own)?, (*null)?))) {
        seen += own.cpu_ns;
        at_most += own.cpu_ns + own.unseen_ns;
        floor += null.cpu_ns / null.operations * own.operations;
    }
    let limit = FLOOR / f64::from(load.pipeline.max(1));
    // The other load's work is in both costs, each with as much as it could get done.
    (load.beside.is_none() && at_most < limit * floor).then(|| seen / floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(cpu_us: f64) -> Option<Took> {
        Some(Took { cpu_ns: cpu_us * 1e3 * 1e5, operations: 1e5, unseen_ns: 0.0 })
    }

    #[test]
    fn batching_below_the_null_server_is_honest_and_next_to_nothing_is_not() {
        let one = LoadShape::closed(64, 1);
        let null = [took(4.0), took(17.0)];
        assert_eq!(below_floor(&[took(2.3), took(2.3)], &null, &one), None);
        assert_eq!(below_floor(&[took(1.06), took(1.06)], &null, &one), None);
        let part = below_floor(&[took(0.1), took(0.1)], &null, &one).unwrap();
        assert!((part - 0.2 / 21.0).abs() < 1e-9, "{part}");
        assert_eq!(below_floor(&[took(0.0)], &null, &one), Some(0.0));
    }

    #[test]
    fn sixteen_requests_with_one_receive_and_one_send_are_honest() {
        let deep = LoadShape::closed(64, 16);
        assert_eq!(below_floor(&[took(0.2)], &[took(3.0)], &deep), None);
        assert!(below_floor(&[took(0.01)], &[took(3.0)], &deep).is_some());
    }

    #[test]
    fn a_short_window_read_in_ticks_accuses_nobody() {
        let in_ticks = |cpu_ns| Took { cpu_ns, operations: 500.0, unseen_ns: UNSEEN_NS };
        let null = Took { cpu_ns: 500.0 * 17e3, operations: 500.0, unseen_ns: 0.0 };
        let one = LoadShape::closed(64, 1);
        assert_eq!(below_floor(&[Some(in_ticks(0.0))], &[Some(null)], &one), None);
        assert_eq!(below_floor(&[Some(in_ticks(0.0))], &[None], &one), None, "no common round");
    }
}
