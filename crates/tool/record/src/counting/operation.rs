//! Kinds of operations, and the counts of each kind.
//!
//! The first kind is always the request; its counts are separate fields, e.g.
//! [`crate::Counted::requests`]. All further kinds are messages that servers send unsolicited, e.g.
//! the deliveries of a broadcast, or the messages of replies that are streams. They are listed beside
//! those fields. The list is empty for most workloads.
//!
//! A cost is reported per operation of one kind. That kind must be verified: an operation counts
//! only after the load has checked that the server had to send it, at this position and with these
//! bytes. Otherwise a server could lower its cost by sending a cheap operation more often. An extra
//! operation is a wrong reply.

use crate::{Mismatch, counting::hdr, encode_histogram};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A kind of operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name in results, which never changes, e.g. `deliveries`.
    pub name: Cow<'static, str>,
    /// The singular in words: `delivery`.
    pub one: Cow<'static, str>,
    /// The plural in words: `deliveries`.
    pub several: Cow<'static, str>,
}

impl Operation {
    /// A request and its reply.
    pub const REQUESTS: Operation = Operation::new("requests", "request", "requests");

    /// Every copy of a broadcast that a hub delivers to a member.
    pub const DELIVERIES: Operation = Operation::new("deliveries", "delivery", "deliveries");

    /// The copy of a broadcast with which all members that were owed it have it.
    pub const LAST_DELIVERIES: Operation = Operation::new(
        "last_deliveries",
        "delivery to the last member",
        "deliveries to the last member",
    );

    /// Every message of replies that are streams.
    pub const MESSAGES: Operation = Operation::new("messages", "message", "messages");
    /// The first message of a reply that is a stream.
    pub const FIRST_MESSAGES: Operation =
        Operation::new("first_messages", "first message", "first messages");
    /// The longest time between two messages of a reply that is a stream. Its length is kept as its latency.
    pub const LONGEST_GAPS: Operation =
        Operation::new("longest_gaps", "longest gap", "longest gaps");

    /// Creates a kind from its name in results and its words for one and for several.
    pub const fn new(name: &'static str, one: &'static str, several: &'static str) -> Operation {
        Operation {
            name: Cow::Borrowed(name),
            one: Cow::Borrowed(one),
            several: Cow::Borrowed(several),
        }
    }

    /// Whether such operations are counted, and have no latencies.
    pub fn is_only_counted(&self) -> bool {
        self.name == Self::MESSAGES.name
    }

    /// Whether a request without a right reply has no such operation although it should: its latency then
    /// counts as longer than all.
    pub fn fails_with_request(&self) -> bool {
        self.name == Self::FIRST_MESSAGES.name
    }

    /// Whether this is the request.
    pub fn is_request(&self) -> bool {
        self.name == Self::REQUESTS.name
    }
}

impl Default for Operation {
    fn default() -> Self {
        Operation::REQUESTS
    }
}

/// The counts of one kind of operation in load processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationCounted {
    /// The kind.
    pub operation: Operation,
    /// Number of operations inside the measured window.
    pub count: u64,
    /// Number of operations of the whole run.
    pub whole_run: u64,
    /// Nanoseconds from the send that caused an operation (in open loop the intended send) until it
    /// arrived; of the longest gap of a stream, its length. Of the operations whose send was, or was due,
    /// inside the window, whenever they arrived. Empty if the kind is only counted.
    #[serde(with = "hdr")]
    pub histogram: Histogram<u64>,
    /// Number of operations that were owed and have not come, of those whose send was, or was due, inside the window.
    /// They have no latency, and count as longer than all others. Of the deliveries to the last member: the broadcasts
    /// of which at least one member has got nothing.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub missing: u64,
}

/// The counts of one kind of operation in a round, in addition to requests: messages that the
/// server sends unsolicited, or those of replies that are streams; all verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundOperation {
    /// The kind.
    pub operation: Operation,
    /// Number of operations inside the measured window.
    pub count: u64,
    /// Number of operations of the whole round.
    pub whole_run: u64,
    /// HDR histogram of latencies, V2 format, base64; see [`OperationCounted::histogram`].
    pub histogram: String,
}

impl OperationCounted {
    /// Creates an empty count. All histograms of a load have the range and precision of `empty`.
    pub fn nothing(operation: Operation, empty: Histogram<u64>) -> OperationCounted {
        OperationCounted { operation, count: 0, whole_run: 0, histogram: empty, missing: 0 }
    }

    /// Converts the counts to the form that a round stores.
    pub fn to_round(&self) -> RoundOperation {
        RoundOperation {
            operation: self.operation.clone(),
            count: self.count,
            whole_run: self.whole_run,
            histogram: encode_histogram(&self.histogram),
        }
    }

    /// Adds the counts of another thread or process. Both lists of kinds must be equal.
    pub(crate) fn add_all(ours: &mut [Self], theirs: &[Self]) -> Result<(), Mismatch> {
        for (ours, theirs) in ours.iter_mut().zip(theirs) {
            ours.count += theirs.count;
            ours.whole_run += theirs.whole_run;
            ours.missing += theirs.missing;
            hdr::add(&mut ours.histogram, &theirs.histogram)?;
        }
        Ok(())
    }

    /// Rejects lists of different kinds, or of the same kinds in another order.
    pub(crate) fn check_all_like(ours: &[Self], theirs: &[Self]) -> Result<(), Mismatch> {
        let kinds = |all: &[Self]| -> Vec<Operation> {
            all.iter().map(|one| one.operation.clone()).collect()
        };
        if kinds(ours) != kinds(theirs) {
            let (ours, theirs) = (listed(ours), listed(theirs));
            return Err(Mismatch(format!("operations of the kinds {ours} and {theirs}")));
        }
        let mut pairs = ours.iter().zip(theirs);
        pairs.try_for_each(|(ours, theirs)| hdr::check_like(&ours.histogram, &theirs.histogram))
    }

    /// Checks that the counts are consistent. `like` is a histogram of the same load.
    pub(crate) fn check(&self, like: &Histogram<u64>) -> Result<(), Mismatch> {
        let OperationCounted { operation, count, whole_run, histogram, .. } = self;
        let (several, latencies) = (&operation.several, histogram.len());
        if operation.is_request() {
            return Err(Mismatch("requests are counted twice".into()));
        }
        if count > whole_run || latencies > *whole_run {
            return Err(Mismatch(format!(
                "{count} {several} and {latencies} latencies of {several} in the window, but only \
                 {whole_run} in the whole run"
            )));
        }
        hdr::check_like(like, histogram)
    }
}

fn listed(all: &[OperationCounted]) -> String {
    let names: Vec<&str> = all.iter().map(|one| &*one.operation.name).collect();
    if names.is_empty() { "requests only".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELIVERIES: Operation = Operation::new("deliveries", "delivery", "deliveries");

    fn histogram() -> Histogram<u64> {
        Histogram::new_with_bounds(1, 1_000_000, 3).unwrap()
    }

    /// `count` operations inside the window, `whole_run` in all, with `latencies` latencies.
    fn counted(count: u64, whole_run: u64, latencies: u64) -> OperationCounted {
        let mut histogram = histogram();
        histogram.record_n(7, latencies).unwrap();
        OperationCounted { operation: DELIVERIES, count, whole_run, histogram, missing: 0 }
    }

    #[test]
    fn a_kind_survives_a_message() {
        let text = serde_json::to_string(&DELIVERIES).unwrap();
        assert_eq!(text, r#"{"name":"deliveries","one":"delivery","several":"deliveries"}"#);
        assert_eq!(serde_json::from_str::<Operation>(&text).unwrap(), DELIVERIES);
        assert!(Operation::default().is_request() && !DELIVERIES.is_request());
    }

    #[test]
    fn counts_that_contradict_themselves_are_refused() {
        let refused = |counted: OperationCounted| {
            counted.check(&histogram()).map_err(|unlike| unlike.to_string()).err()
        };
        assert_eq!(refused(counted(3, 3, 3)), None);
        assert_eq!(refused(counted(0, 0, 0)), None);
        assert_eq!(
            refused(counted(3, 9, 5)),
            None,
            "two arrived after the window, but were caused inside it"
        );
        let more = refused(counted(4, 3, 3)).unwrap();
        assert!(more.starts_with("4 deliveries and 3 latencies of deliveries"), "{more}");
        assert!(refused(counted(3, 3, 4)).is_some());
        let requests = OperationCounted { operation: Operation::REQUESTS, ..counted(1, 1, 1) };
        assert_eq!(refused(requests).unwrap(), "requests are counted twice");
        let other = Histogram::new_with_bounds(1, 1_000_000, 2).unwrap();
        assert!(counted(1, 1, 1).check(&other).is_err());
    }
}
