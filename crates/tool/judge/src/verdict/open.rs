//! The verdict on an open loop: whether the requested rate was offered, and whether the server held
//! it.
//!
//! Of the three parts of a latency only the lag is the generator's (method, rule 5). So the lag
//! shows whether the generator was on time, however busy it was. The wait for a free connection and
//! the time to the reply are the server's.

use super::{remedy::Remedy, used::Used};
use regatta_record::{
    Arrivals, Cause, CellFinding, Fates, Figure, Kind, LagSeen, Late, Latency, Missed,
    OpenLoopFigures, Verdict,
};

/// Fraction of a requested rate, or of the requests due, from which a rate counts as held.
pub const HELD: f64 = 0.98;
/// The median request waited long for a free connection if it waited for more than this fraction of the median
/// time to the reply.
const LONG_WAIT: f64 = 0.1;
/// Fraction of a requested rate below which a busy server did not keep up, though connections were free. Less
/// than [`HELD`]: a server that is nearly busy needs some time for the last replies, too.
const HELD_BUSY: f64 = 0.9;
/// The lag is long if its p99 exceeds this fraction of the latency's p99 (with few requests: the
/// highest percentile that both have)...
pub const LONG_LAG: f64 = 0.1;
/// ... and this many nanoseconds: a busy machine takes that long to wake a thread twice.
pub const LONG_LAG_NS: u64 = 100_000;

/// The figures of an open loop.
#[derive(Clone, Copy, Debug)]
pub struct AtRate<'a> {
    /// Requests to send per second.
    pub asked: u32,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Correct replies per second.
    pub answered: f64,
    /// The fates of the requests that were due, if recorded.
    pub open_loop: Option<&'a OpenLoopFigures>,
    /// From the intended send to the reply.
    pub latency: &'a Latency,
    /// Number of rounds.
    pub rounds: u32,
    /// How busy the server was, if observed.
    pub server: Option<Used>,
}

impl AtRate<'_> {
    /// Judges the open loop.
    pub fn verdict(self, load: Option<Used>, remedy: Remedy<'_>) -> Verdict {
        let server_busy = self.server.is_some_and(Used::is_busy);
        let late = self.lateness();
        // A load without CPU reads replies late, and therefore finds no free connection. Then it
        // caused the wait itself.
        let without_cpu = load.is_some_and(|load| load.is_busy() || load.is_starved());
        match late {
            Some(late) if !server_busy => self.generator_bound(late, load, remedy),
            None if !server_busy && without_cpu && !self.is_held() => {
                self.generator_bound(Late::NoCpu, load, remedy)
            }
            late => self.by_server(late, remedy),
        }
    }

    fn by_server(self, late: Option<Late>, remedy: Remedy<'_>) -> Verdict {
        let lag = self.lag().map(|lag| lag.seen);
        let arrivals = self.arrivals;
        let mut verdict = if self.is_held() {
            let Missed { asked_per_s, answered_per_s } = self.missed();
            let cause = Cause::Held { asked_per_s, arrivals, answered_per_s, lag };
            Verdict::new(Kind::AtAskedRate, cause)
        } else {
            let missed = self.missed();
            let cause = Cause::NotHeld { missed, arrivals, lag, fates: self.fates() };
            let remedy = match self.server.and_then(Used::busy_thread) {
                Some(share) => format!(
                    "its busiest thread used {share:.2} of a CPU, and more CPUs do not help: {}",
                    remedy.less()
                ),
                None => remedy.more_for_server(),
            };
            Verdict::new(Kind::Overloaded, cause).with_remedy(remedy)
        };
        if let Some(late) = late {
            verdict.void = vec![Figure::Latency];
            let finding = CellFinding::new(verdict.kind(), Cause::LateBesideBusy { late });
            verdict.findings.push(finding);
        }
        verdict
    }

    fn generator_bound(self, late: Late, load: Option<Used>, remedy: Remedy<'_>) -> Verdict {
        let is_starved = load.is_some_and(Used::is_starved);
        let cause = Cause::LateSends {
            late,
            server: self.server.map(Used::seen),
            load: load.map(Used::seen),
            missed: self.missed(),
            arrivals: self.arrivals,
            starved_by_other_side: is_starved.then(|| remedy.shares()),
        };
        let remedy = match load {
            Some(load) if load.is_starved() => remedy.another_for_load(),
            Some(load) if load.is_busy() => remedy.more_for_load(),
            _ => "stop other programs (`regatta doctor` finds them), or lower the rate".to_owned(),
        };
        Verdict::new(Kind::GeneratorBound, cause).with_remedy(remedy)
    }

    /// The rate that was asked for, and the answered one.
    pub fn missed(&self) -> Missed {
        Missed { asked_per_s: self.asked, answered_per_s: self.answered }
    }

    /// What became of the requests that were due and not answered in time.
    fn fates(&self) -> Option<Fates> {
        let open = self.open_loop?;
        let share = |n: u64| n as f64 / open.due.max(1) as f64;
        Some(Fates {
            unsent: share(open.unsent),
            late: share(open.late),
            timed_out: share(open.timed_out),
            lost: share(open.lost),
            refused: share(open.refused),
            wait_p50_ns: open.wait_ns.p50,
        })
    }

    /// Why the generator was late, if it was: its lag was long, or in most rounds the arrivals did not have
    /// the requested shape.
    fn lateness(&self) -> Option<Late> {
        let open = self.open_loop?;
        if let Some(lag) = self.lag().filter(Lag::is_long) {
            return Some(Late::Lag(lag.seen));
        }
        let (seen, of) = (open.misshapen, self.rounds);
        (seen * 2 > of).then_some(Late::Misshapen { seen, of })
    }

    /// The highest percentile of the lag, up to p99, for which there are enough sends and enough
    /// latencies.
    fn lag(&self) -> Option<Lag> {
        let (lag, latency) = (&self.open_loop?.send_lag_ns, self.latency);
        // If some requests had no reply, there is no maximum.
        let is_censored = latency.max.is_none();
        let each = [
            (99, lag.p99, latency.p99),
            (95, lag.p95, latency.p95),
            (90, lag.p90, latency.p90),
            (50, lag.p50, latency.p50),
        ];
        each.into_iter().find_map(|(percent, ns, latency)| {
            let known = latency.is_some() || is_censored;
            ns.filter(|_| known).map(|ns| Lag { seen: LagSeen { percent, ns }, latency })
        })
    }

    /// Whether enough of the requested rate was answered.
    ///
    /// No request is missed if all are answered later: after the window, or after a slice. Such an overload is
    /// seen by the rate, which includes the time until the last reply of a slice. The rate of a slow server that
    /// keeps up is lower, too; but it has free connections, and is not busy.
    pub fn is_held(&self) -> bool {
        let share = self.answered / f64::from(self.asked);
        let Some(open) = self.open_loop else { return share >= HELD };
        let missed = open.unsent + open.timed_out + open.lost;
        let is_busy = self.server.is_some_and(Used::is_busy);
        let falls_behind = share < HELD && waits_long(open) || share < HELD_BUSY && is_busy;
        open.due.saturating_sub(missed) as f64 >= HELD * open.due as f64 && !falls_behind
    }
}

/// Whether most requests found no free connection.
fn waits_long(open: &OpenLoopFigures) -> bool {
    let wait = open.wait_ns.p50.unwrap_or(0) as f64;
    wait > LONG_WAIT * open.service_ns.p50.unwrap_or(0) as f64
}

/// A percentile of the lag.
#[derive(Clone, Copy, Debug)]
struct Lag {
    seen: LagSeen,
    /// The same percentile of the latency; `None` if it falls among requests without a reply.
    latency: Option<u64>,
}

impl Lag {
    fn is_long(&self) -> bool {
        // The latency of a request without a reply counts as infinite.
        let part = self.latency.map_or(0.0, |latency| self.seen.ns as f64 / latency as f64);
        self.seen.ns > LONG_LAG_NS && part > LONG_LAG
    }
}
