//! The counts of a load process. Counts of several processes merge without loss: the same samples
//! give the same counts, regardless of how many processes recorded them. Times are durations, never
//! clock readings, so the clocks of the processes may differ.

use crate::{
    AcrossCounted, AnnouncedLosses, ArrivalsSeen, BroadcastCounts, Errors, Exchange, FORMAT,
    Mismatch, Operation, OperationCounted, WrongDeliveries, counting::hdr,
};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, mem};

/// The TLS parameters used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpoken {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite by its name in the standard.
    pub cipher: String,
    /// Whether the server's certificate was checked.
    pub checked: bool,
}

/// The counts of one or several load processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Correct replies inside the measured window.
    pub requests: u64,
    /// Right replies inside the window that are refusals, as the load permits. They are not among the requests or
    /// the replies, and have no latency.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: u64,
    /// Length of the window by the clock of the process, in nanoseconds; 0 if it never opened. Merged
    /// counts have the longest window, so that no rate is overstated.
    pub window_ns: u64,
    /// Correct replies in each slice of the window.
    pub slices: Vec<u64>,
    /// Length of a slice, in nanoseconds.
    pub slice_ns: u64,
    /// Errors of the whole run, by kind.
    pub errors: Errors,
    /// Reasons why connections were lost or not opened, in words, and how often each occurred.
    pub causes: BTreeMap<String, u64>,
    /// The first reply that was only partly received before its connection was lost, if any.
    pub first_unfinished: Option<Exchange>,
    /// Correct replies of the whole run.
    pub replies: u64,
    /// Replies inside the window, correct or not, by status, if the protocol has one.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that timed out inside the window.
    pub timeouts_in_window: u64,
    /// The first wrong exchange.
    pub first_wrong: Option<FirstWrong>,
    /// Bytes received inside the window, without the encryption of TLS.
    #[serde(default)]
    pub reply_bytes: u64,
    /// Latency, in nanoseconds.
    #[serde(with = "hdr")]
    pub histogram: Histogram<u64>,
    /// Operations of further kinds, in the order of the dialect. Absent: there are only requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationCounted>,
    /// What members sent to other machines and received from them. Absent: there are no other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<Box<AcrossCounted>>,
    /// What the server announced as lost. Absent: the load does not permit that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<AnnouncedLosses>,
    /// Wrong deliveries, by kind, without those from other machines. Absent: nothing is delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_deliveries: Option<WrongDeliveries>,
    /// What else is counted of broadcasts. Absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcasts: Option<BroadcastCounts>,
    /// CPU time of the load threads inside the window, user and system, in nanoseconds.
    pub load_cpu_ns: u64,
    /// The part of it spent on polling without work.
    pub spun_ns: u64,
    /// Time that load threads were runnable without a CPU inside the window, in nanoseconds. `None` if
    /// a kernel does not report it.
    pub run_delay_ns: Option<u64>,
    /// How often load threads got a CPU inside the window. `None` if a kernel does not report it.
    pub turns: Option<u64>,
    /// Connections opened during the whole run, without those of members that join and leave.
    pub connections_opened: u64,
    /// Requests that servers did not process before a close that they announced, and that were therefore
    /// sent again on other connections, during the whole run.
    #[serde(default)]
    pub sent_again: u64,
    /// The lowest number of requests in flight that the server permitted on a connection, if that was
    /// fewer than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_limit: Option<u32>,
    /// Members that joined and left during the whole run.
    #[serde(default)]
    pub passed: u64,
    /// In a burst: time from the start of the window to the last reply of each instance, by instance
    /// number, in nanoseconds; 0 for an instance without a reply.
    pub instances_ns: BTreeMap<u32, u64>,
    /// In open loop: the outcome of the scheduled requests. `None` if the window has stages: each has its
    /// own.
    pub open_loop: Option<OpenCounted>,
    /// The stages of the window that began, each with the counts that belong to it. Absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Counted>,
    /// The TLS parameters of the first connection.
    pub tls: Option<TlsSpoken>,
}

/// The part of the requests or deliveries of a whole run that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailedShare {
    /// From 0 to 1.
    pub share: f64,
    /// Of what: `requests` or `deliveries`.
    pub of: &'static str,
}

/// A wrong exchange, and when it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstWrong {
    /// Time since the process got its first order, in nanoseconds. All processes get it at the same
    /// time, apart from the delay of a message.
    pub after_ns: u64,
    /// The exchange.
    pub exchange: Exchange,
}

/// The outcome of all requests of an open loop that were due inside the window. Each is exactly one of
/// answered (and in all histograms), refused, timed out, lost, unsent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCounted {
    /// Requests due inside the window.
    pub due: u64,
    /// Due requests that were not sent.
    pub unsent: u64,
    /// Due requests that were sent more than [`crate::OpenLoop::LATE_NS`] late.
    pub late: u64,
    /// Due requests that timed out.
    pub timed_out: u64,
    /// Due requests that were sent and lost to another error, or because the run ended early.
    pub lost: u64,
    /// Due requests that were refused, as the load permits.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: u64,
    /// Nanoseconds from when a request was due until a connection was free: caused by the server.
    #[serde(with = "hdr")]
    pub wait: Histogram<u64>,
    /// Nanoseconds from then until the write: caused by the load generator.
    #[serde(with = "hdr")]
    pub lag: Histogram<u64>,
    /// Nanoseconds from the write to the reply.
    #[serde(with = "hdr")]
    pub service: Histogram<u64>,
    /// How the requests arrived.
    pub arrivals: ArrivalsSeen,
}

impl Counted {
    /// Creates empty counts. All histograms of the load have the range and precision of `empty`;
    /// `slice_ns` is the length of a slice in nanoseconds; `further` lists the kinds of operations
    /// in addition to requests.
    pub fn nothing(empty: Histogram<u64>, slice_ns: u64, further: &[Operation]) -> Counted {
        let nothing = |kind: &Operation| OperationCounted::nothing(kind.clone(), empty.clone());
        Counted {
            operations: further.iter().map(nothing).collect(),
            format: FORMAT,
            requests: 0,
            refused: 0,
            window_ns: 0,
            slices: Vec::new(),
            slice_ns,
            errors: Errors::default(),
            causes: BTreeMap::new(),
            first_unfinished: None,
            replies: 0,
            statuses: BTreeMap::new(),
            timeouts_in_window: 0,
            first_wrong: None,
            reply_bytes: 0,
            histogram: empty,
            across: None,
            announced: None,
            wrong_deliveries: None,
            broadcasts: None,
            load_cpu_ns: 0,
            spun_ns: 0,
            run_delay_ns: Some(0),
            turns: Some(0),
            connections_opened: 0,
            sent_again: 0,
            in_flight_limit: None,
            passed: 0,
            instances_ns: BTreeMap::new(),
            open_loop: None,
            stages: Vec::new(),
            tls: None,
        }
    }

    /// Number of operations of a kind, other than requests, in the whole run.
    fn whole_run_of(&self, operation: &Operation) -> u64 {
        let of_kind = self.operations.iter().filter(|one| one.operation.name == operation.name);
        of_kind.map(|one| one.whole_run).sum()
    }

    /// Number of right replies in the whole run, of a hub only those that are results of broadcasts: each member has a
    /// reply when it joins, and many members that listen would hide that broadcasts fail.
    pub fn right_replies(&self) -> u64 {
        let BroadcastCounts { joins, wrong_results, .. } = self.broadcasts.unwrap_or_default();
        self.replies.saturating_sub(joins + wrong_results)
    }

    /// The share of the requests that failed, if there were so many errors, wrong deliveries and `refused` connections
    /// included; or the share of the deliveries that are wrong, in those that were owed, if that is more. A hub has many
    /// deliveries for each request, so neither may hide the other. Nor may members that join hide that broadcasts fail:
    /// they are requests beside the broadcasts, and the share of those without them counts if it is more.
    pub fn failed_share(&self, errors: u64, refused: u64) -> FailedShare {
        let wrong = self.wrong_deliveries.unwrap_or_default();
        let BroadcastCounts { joins, failed_joins, .. } = self.broadcasts.unwrap_or_default();
        let of = |failed: u64, right: u64| failed as f64 / (failed + right).max(1) as f64;
        let (failed, right) = (errors.saturating_sub(wrong.total()), self.right_replies());
        let of_broadcasts = self
            .broadcasts
            .map_or(0.0, |_| of(failed.saturating_sub(failed_joins + refused), right));
        let requests = of(failed, right + joins).max(of_broadcasts);
        let owed = self.whole_run_of(&Operation::DELIVERIES) + wrong.missing;
        let deliveries = (wrong.total() as f64 / owed.max(1) as f64).min(1.0);
        match deliveries > requests {
            true => FailedShare { share: deliveries, of: "deliveries" },
            false => FailedShare { share: requests, of: "requests" },
        }
    }

    /// Adds the counts of another process or thread.
    ///
    /// # Errors
    /// If the counts do not belong to the same load: formats or kinds of operations differ, histograms
    /// differ in range or precision, slices in length, strides of arrivals in the number of gaps or
    /// quantiles, or both have the same instance of a burst. `self` is unchanged then.
    pub fn add(&mut self, mut other: Counted) -> Result<(), Mismatch> {
        self.add_from(&mut other)
    }

    /// Like [`Counted::add`]. Leaves the histograms of `other`, so that their memory can be used again.
    ///
    /// # Errors
    /// Those of [`Counted::add`].
    pub fn add_from(&mut self, other: &mut Counted) -> Result<(), Mismatch> {
        self.check_like(other)?;
        self.requests += other.requests;
        self.refused += other.refused;
        self.window_ns = self.window_ns.max(other.window_ns);
        self.slices.resize(self.slices.len().max(other.slices.len()), 0);
        self.slices.iter_mut().zip(&other.slices).for_each(|(sum, n)| *sum += n);
        self.errors.add(&other.errors);
        for (cause, times) in mem::take(&mut other.causes) {
            *self.causes.entry(cause).or_default() += times;
        }
        self.first_unfinished = self.first_unfinished.take().or(other.first_unfinished.take());
        self.replies += other.replies;
        for (status, replies) in mem::take(&mut other.statuses) {
            *self.statuses.entry(status).or_default() += replies;
        }
        self.timeouts_in_window += other.timeouts_in_window;
        self.first_wrong = match (self.first_wrong.take(), other.first_wrong.take()) {
            (Some(ours), Some(theirs)) if theirs.after_ns < ours.after_ns => Some(theirs),
            (ours, theirs) => ours.or(theirs),
        };
        self.reply_bytes += other.reply_bytes;
        hdr::add(&mut self.histogram, &other.histogram)?;
        OperationCounted::add_all(&mut self.operations, &other.operations)?;
        match (&mut self.across, other.across.take()) {
            (Some(ours), Some(theirs)) => ours.add(&theirs)?,
            (ours @ None, theirs) => *ours = theirs,
            (Some(_), None) => {}
        }
        if let Some(theirs) = other.announced.take() {
            self.announced.get_or_insert_default().add(theirs);
        }
        if let Some(theirs) = other.wrong_deliveries.take() {
            self.wrong_deliveries.get_or_insert_default().add(theirs);
        }
        if let Some(theirs) = other.broadcasts.take() {
            self.broadcasts.get_or_insert_default().add(theirs);
        }
        self.load_cpu_ns += other.load_cpu_ns;
        self.spun_ns += other.spun_ns;
        self.run_delay_ns = self.run_delay_ns.zip(other.run_delay_ns).map(|(a, b)| a + b);
        self.turns = self.turns.zip(other.turns).map(|(a, b)| a + b);
        self.connections_opened += other.connections_opened;
        self.sent_again += other.sent_again;
        let limits = self.in_flight_limit.into_iter().chain(other.in_flight_limit);
        self.in_flight_limit = limits.min();
        self.passed += other.passed;
        self.instances_ns.append(&mut other.instances_ns);
        match (&mut self.open_loop, other.open_loop.take()) {
            (Some(ours), Some(theirs)) => ours.add(&theirs)?,
            (ours @ None, theirs) => *ours = theirs,
            (Some(_), None) => {}
        }
        let missing = other.stages.len().saturating_sub(self.stages.len());
        let further = other.stages.split_off(other.stages.len() - missing);
        for (ours, theirs) in self.stages.iter_mut().zip(other.stages.drain(..)) {
            ours.add(theirs)?;
        }
        self.stages.extend(further);
        self.tls = self.tls.take().or(other.tls.take());
        Ok(())
    }

    fn check_like(&self, other: &Counted) -> Result<(), Mismatch> {
        if self.format != other.format {
            let (ours, theirs) = (self.format, other.format);
            return Err(Mismatch(format!("formats {ours} and {theirs}")));
        }
        if self.slice_ns != other.slice_ns {
            let (ours, theirs) = (self.slice_ns, other.slice_ns);
            return Err(Mismatch(format!("slices of {ours} ns and of {theirs} ns")));
        }
        if let Some(twice) = other.instances_ns.keys().find(|i| self.instances_ns.contains_key(i)) {
            return Err(Mismatch(format!("instance {twice} of the burst was counted twice")));
        }
        hdr::check_like(&self.histogram, &other.histogram)?;
        OperationCounted::check_all_like(&self.operations, &other.operations)?;
        if let (Some(ours), Some(theirs)) = (&self.across, &other.across) {
            theirs.check(ours.latencies.len(), &self.histogram)?;
        }
        for (ours, theirs) in self.stages.iter().zip(&other.stages) {
            ours.check_like(theirs)?;
        }
        match (&self.open_loop, &other.open_loop) {
            (Some(ours), Some(theirs)) => ours.check_like(theirs),
            _ => Ok(()),
        }
    }

    /// Checks that the counts of a process are consistent. `open_loop` says whether the load had a
    /// rate.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, open_loop: bool) -> Result<(), Mismatch> {
        let refuse = |what: String| Err(Mismatch(what));
        let sum: u64 = self.slices.iter().sum();
        if self.format != FORMAT {
            return refuse(format!("format {}, expected format {FORMAT}", self.format));
        }
        if sum != self.requests {
            return refuse(format!("{} requests, but {sum} in the slices", self.requests));
        }
        if self.spun_ns > self.load_cpu_ns {
            return refuse("more CPU time spun than used".into());
        }
        if (self.open_loop.is_some() || !self.stages.is_empty()) != open_loop {
            return refuse("counts of an open loop for a closed one, or the reverse".into());
        }
        let each = &mut self.operations.iter();
        each.try_for_each(|counted| counted.check(&self.histogram))?;
        if let Some(across) = &self.across {
            across.check(across.latencies.len(), &self.histogram)?;
        }
        let latencies = self.histogram.len();
        if !self.stages.is_empty() {
            return self.check_stages();
        }
        let Some(open) = &self.open_loop else {
            return match latencies <= self.replies {
                true => Ok(()),
                false => refuse(format!("{} replies, but {latencies} latencies", self.replies)),
            };
        };
        let parts = [&open.wait, &open.lag, &open.service];
        if parts.iter().any(|part| part.len() != latencies) {
            return refuse("latencies without their three parts".into());
        }
        let settled = latencies + open.unsent + open.timed_out + open.lost + open.refused;
        if settled != open.due {
            return refuse(format!("{} requests due, but {settled} outcomes", open.due));
        }
        parts.iter().try_for_each(|part| hdr::check_like(&self.histogram, part))
    }
}

impl Counted {
    /// Checks the stages: together they have the requests and latencies of the window.
    fn check_stages(&self) -> Result<(), Mismatch> {
        self.stages.iter().try_for_each(|stage| match stage.stages.is_empty() {
            true => stage.check(true),
            false => Err(Mismatch("a stage with stages".into())),
        })?;
        let requests = self.stages.iter().map(|stage| stage.requests).sum::<u64>();
        let latencies = self.stages.iter().map(|stage| stage.histogram.len()).sum::<u64>();
        if (requests, latencies) != (self.requests, self.histogram.len()) {
            return Err(Mismatch(format!(
                "{} requests and {} latencies, but {requests} and {latencies} in the stages",
                self.requests,
                self.histogram.len()
            )));
        }
        Ok(())
    }
}

impl OpenCounted {
    /// Creates empty counts with these histograms of wait, lag and service.
    pub fn nothing(parts: [Histogram<u64>; 3], arrivals: ArrivalsSeen) -> OpenCounted {
        let [wait, lag, service] = parts;
        OpenCounted {
            due: 0,
            unsent: 0,
            late: 0,
            timed_out: 0,
            lost: 0,
            refused: 0,
            wait,
            lag,
            service,
            arrivals,
        }
    }

    fn add(&mut self, other: &OpenCounted) -> Result<(), Mismatch> {
        self.add_outcomes(other)?;
        self.arrivals.add(&other.arrivals)
    }

    /// Adds the counts of another stage, without its arrivals: those of stages with different rates have different
    /// strides.
    ///
    /// # Errors
    /// If histograms differ in range or precision.
    pub fn add_outcomes(&mut self, other: &OpenCounted) -> Result<(), Mismatch> {
        self.due += other.due;
        self.unsent += other.unsent;
        self.late += other.late;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        self.refused += other.refused;
        hdr::add(&mut self.wait, &other.wait)?;
        hdr::add(&mut self.lag, &other.lag)?;
        hdr::add(&mut self.service, &other.service)
    }

    fn check_like(&self, other: &OpenCounted) -> Result<(), Mismatch> {
        hdr::check_like(&self.wait, &other.wait)?;
        hdr::check_like(&self.lag, &other.lag)?;
        hdr::check_like(&self.service, &other.service)?;
        self.arrivals.check_like(&other.arrivals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(errors: u64, delivered: u64, wrong: WrongDeliveries) -> FailedShare {
        let empty = Histogram::new(3).unwrap();
        let mut counted = Counted::nothing(empty, 1, &[Operation::DELIVERIES]);
        counted.replies = 1_000;
        counted.operations[0].whole_run = delivered;
        counted.wrong_deliveries = Some(wrong);
        counted.failed_share(errors, 0)
    }

    /// 10 broadcasts to 1,000 members, of which most listen, and some join again.
    #[test]
    fn neither_broadcasts_nor_joins_hide_those_that_fail() {
        for (wrong_results, lost, failed_joins, refused, joins, share) in [
            (0, 0, 0, 0, 1_000, 0.0),
            (1, 0, 0, 0, 1_000, 0.1),
            (10, 0, 0, 0, 5_000, 1.0),
            (0, 30, 0, 0, 1_000, 0.75),
            // Members that fail to join are requests among all.
            (0, 0, 2, 0, 988, 0.002),
            (0, 0, 0, 5, 985, 0.005),
            (0, 0, 10, 0, 0, 0.5),
        ] {
            let mut counted = Counted::nothing(Histogram::new(3).unwrap(), 1, &[]);
            counted.replies = joins + 10;
            counted.wrong_deliveries = Some(WrongDeliveries::default());
            let of_joins = BroadcastCounts { joins, failed_joins, ..BroadcastCounts::default() };
            counted.broadcasts = Some(BroadcastCounts { wrong_results, ..of_joins });
            assert_eq!(counted.right_replies(), 10 - wrong_results);
            let errors = wrong_results + lost + failed_joins + refused;
            let failed = counted.failed_share(errors, refused);
            assert_eq!(failed, FailedShare { share, of: "requests" }, "{counted:?}");
        }
    }

    #[test]
    fn many_deliveries_hide_no_failed_request_and_many_requests_no_delivery() {
        let none = WrongDeliveries::default();
        let missing = WrongDeliveries { missing: 1_000, ..none };
        let twice = WrongDeliveries { twice: 5_000, ..none };
        for (errors, delivered, wrong, share, of) in [
            (10, 0, none, 10.0 / 1_010.0, "requests"),
            // Nothing to one of 1,000 members.
            (1_000, 999_000, missing, 0.001, "deliveries"),
            // Nothing to one of 8 members: each of these weighs as one.
            (1_000, 7_000, missing, 1_000.0 / 8_000.0, "deliveries"),
            (1_020, 999_000, missing, 20.0 / 1_020.0, "requests"),
            (5_000, 1_000, twice, 1.0, "deliveries"),
        ] {
            assert_eq!(failed(errors, delivered, wrong), FailedShare { share, of });
        }
    }
}
