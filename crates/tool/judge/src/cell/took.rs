//! Whether the measured CPU time of a contender's processes can be the full cost of its work.

use regatta_record::{LoadShape, Operation, Round, UsageSource};

/// Minimum plausible cost as a fraction of the null server's, at one request at a time per
/// connection. A lower cost cannot be that of the work.
///
/// The null server receives and sends the same bytes and does nothing else. An honest contender may
/// still be cheaper: it can wait less often (a busy server finds several connections ready at once,
/// while the null server is woken for each request), and it can make fewer system calls (io_uring).
/// It cannot save the TCP work for the bytes that it receives and sends, which on loopback includes
/// the delivery to the other end (`tcp_sendmsg` runs the receiver's softirq). In all races of this
/// project's contenders the lowest ratio to the null server was 0.58. A null server that is woken
/// for each request costs up to 17 µs, and a receive and a send about 2 µs, so perfect batching
/// could reach 0.12. With several requests in flight on a connection, a contender may handle all of
/// them with one receive and one send, so the limit is divided by their number.
pub const FLOOR: f64 = 0.1;

/// CPU time that a control group, or a process that waits for its children, may not have reported
/// yet at an edge of a window: two scheduler ticks of 10 ms.
const UNSEEN_NS: f64 = 20e6;

/// CPU time and work of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredWork {
    /// CPU time of the contender's processes, nanoseconds.
    pub cpu_ns: f64,
    /// Number of operations of the kind that costs are per.
    pub operations: f64,
    /// CPU time that may be missing, depending on its source, nanoseconds.
    pub unseen_ns: f64,
}

impl MeasuredWork {
    /// Returns `None` if the contender was not observed, or did nothing.
    pub fn of(round: &Round, per: &Operation) -> Option<MeasuredWork> {
        let server = round.server.as_ref()?;
        let unseen_ns = match server.source {
            UsageSource::ProcessClocks => 0.0,
            UsageSource::CgroupV2 | UsageSource::CgroupV1 | UsageSource::ProcessTree => UNSEEN_NS,
        };
        let operations = round.count_of(per) as f64;
        (operations > 0.0).then_some(MeasuredWork {
            cpu_ns: server.cpu_ns as f64,
            operations,
            unseen_ns,
        })
    }
}

/// Returns a contender's CPU time as a fraction of the null server's for the same work in the same
/// rounds, if it is too little to be complete: below [`FLOOR`] over the requests in flight per
/// connection, even with the time that may be missing. `None` without common rounds, and beside another
/// load.
pub fn below_floor(
    own: &[Option<MeasuredWork>],
    null: &[Option<MeasuredWork>],
    load: &LoadShape,
) -> Option<f64> {
    let (mut seen, mut at_most, mut floor) = (0.0, 0.0, 0.0);
    for (own, null) in own.iter().zip(null).filter_map(|(own, null)| Some(((*own)?, (*null)?))) {
        seen += own.cpu_ns;
        at_most += own.cpu_ns + own.unseen_ns;
        floor += null.cpu_ns / null.operations * own.operations;
    }
    let limit = FLOOR / f64::from(load.pipeline.max(1));
    // The work for the load beside is part of both costs, and each server did as much of it as it
    // could.
    (load.beside.is_none() && at_most < limit * floor).then(|| seen / floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(cpu_us: f64) -> Option<MeasuredWork> {
        Some(MeasuredWork { cpu_ns: cpu_us * 1e3 * 1e5, operations: 1e5, unseen_ns: 0.0 })
    }

    #[test]
    fn accepts_batching_and_rejects_nearly_no_cost() {
        let one = LoadShape::closed(64, 1);
        let null = [took(4.0), took(17.0)];
        assert_eq!(below_floor(&[took(2.3), took(2.3)], &null, &one), None);
        assert_eq!(below_floor(&[took(1.06), took(1.06)], &null, &one), None);
        let part = below_floor(&[took(0.1), took(0.1)], &null, &one).unwrap();
        assert!((part - 0.2 / 21.0).abs() < 1e-9, "{part}");
        assert_eq!(below_floor(&[took(0.0)], &null, &one), Some(0.0));
    }

    #[test]
    fn accepts_sixteen_requests_with_one_receive_and_one_send() {
        let deep = LoadShape::closed(64, 16);
        assert_eq!(below_floor(&[took(0.2)], &[took(3.0)], &deep), None);
        assert!(below_floor(&[took(0.01)], &[took(3.0)], &deep).is_some());
    }

    #[test]
    fn a_short_window_measured_in_ticks_is_accepted() {
        let in_ticks = |cpu_ns| MeasuredWork { cpu_ns, operations: 500.0, unseen_ns: UNSEEN_NS };
        let null = MeasuredWork { cpu_ns: 500.0 * 17e3, operations: 500.0, unseen_ns: 0.0 };
        let one = LoadShape::closed(64, 1);
        assert_eq!(below_floor(&[Some(in_ticks(0.0))], &[Some(null)], &one), None);
        assert_eq!(below_floor(&[Some(in_ticks(0.0))], &[None], &one), None, "no common round");
    }
}
