//! The verdict on an open loop: whether the requested rate was offered, and whether the server held
//! it.
//!
//! Of the three parts of a latency only the lag is the generator's (method, rule 5). So the lag
//! shows whether the generator was on time, however busy it was. The wait for a free connection and
//! the time to the reply are the server's.

use super::{
    limit::starved,
    remedy::Remedy,
    used::{Used, both, percent},
};
use regatta_record::{Arrivals, Figure, Kind, Latency, OpenLoopFigures, Verdict};

/// Fraction of a requested rate, or of the requests due, from which a rate counts as held.
pub const HELD: f64 = 0.98;
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
}

impl AtRate<'_> {
    /// Judges the open loop.
    pub fn verdict(self, server: Option<Used>, load: Option<Used>, remedy: Remedy<'_>) -> Verdict {
        let server_busy = server.is_some_and(Used::is_busy);
        let late = self.lateness();
        // A load without CPU reads replies late, and therefore finds no free connection. Then it
        // caused the wait itself.
        let without_cpu = load.is_some_and(|load| load.is_busy() || load.is_starved());
        match late {
            Some(late) if !server_busy => self.generator_bound(late, server, load, remedy),
            None if !server_busy && without_cpu && !self.is_held() => {
                let late = "the load had no CPU left".to_owned();
                self.generator_bound(late, server, load, remedy)
            }
            late => self.by_server(late, server, remedy),
        }
    }

    fn by_server(self, late: Option<String>, server: Option<Used>, remedy: Remedy<'_>) -> Verdict {
        let mut verdict = if self.is_held() {
            let in_time = self.lag().map_or_else(String::new, |lag| {
                let Lag { percent, ns, .. } = lag;
                format!("; {percent}% were sent within {} of their due time", time(ns))
            });
            let because = format!(
                "{} requests per second, {}{in_time}",
                self.asked,
                self.arrivals.in_words()
            );
            Verdict::new(Kind::AtAskedRate, because)
        } else {
            let (because, remedy) = self.overloaded(server, remedy);
            Verdict::new(Kind::Overloaded, because).with_remedy(remedy)
        };
        if let Some(late) = late {
            verdict.void = vec![Figure::Latency];
            verdict.first_mut().because += &format!("; but {late}: latency is void");
        }
        verdict.with(self.figures())
    }

    fn generator_bound(
        self,
        late: String,
        server: Option<Used>,
        load: Option<Used>,
        remedy: Remedy<'_>,
    ) -> Verdict {
        let used = match (server, load) {
            (Some(server), Some(load)) => format!(" ({})", both(server, load)),
            _ => String::new(),
        };
        let remedy = match load {
            Some(load) if load.is_starved() => starved(load, remedy),
            Some(load) if load.is_busy() => remedy.more_for_load(),
            _ => "stop other programs (`regatta doctor` finds them), or lower the rate".to_owned(),
        };
        let because = format!(
            "{late}{used}, at {} requests per second, {} ({:.0} were answered)",
            self.asked,
            self.arrivals.in_words(),
            self.answered
        );
        Verdict::new(Kind::GeneratorBound, because).with_remedy(remedy).with(self.figures())
    }

    /// Rates, and the fates of the requests that were due as fractions of them.
    fn figures(&self) -> Vec<(&'static str, f64)> {
        let rates = [("asked_per_s", f64::from(self.asked)), ("answered_per_s", self.answered)];
        let fates = self.open_loop.into_iter().flat_map(|open| {
            [
                ("unsent", open.unsent),
                ("late", open.late),
                ("timed_out", open.timed_out),
                ("lost", open.lost),
            ]
            .map(|(fate, n)| (fate, n as f64 / open.due.max(1) as f64))
        });
        rates.into_iter().chain(fates).collect()
    }

    /// Explains why the generator was late, if it was: its lag was long, or in most rounds the
    /// arrivals did not have the requested shape.
    fn lateness(&self) -> Option<String> {
        let open = self.open_loop?;
        if let Some(Lag { percent, ns, .. }) = self.lag().filter(Lag::is_long) {
            return Some(format!(
                "the load itself was late: {}% of the sends were late by {} or more",
                100 - percent,
                time(ns)
            ));
        }
        (open.misshapen * 2 > self.rounds).then(|| {
            format!(
                "in {} of {} starts the sends did not have the requested arrival times",
                open.misshapen, self.rounds
            )
        })
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
            ns.filter(|_| known).map(|ns| Lag { percent, ns, latency })
        })
    }

    /// Returns whether enough of the requested rate was answered.
    pub fn is_held(&self) -> bool {
        match self.open_loop {
            Some(open) => {
                let missed = open.unsent + open.timed_out + open.lost;
                open.due.saturating_sub(missed) as f64 >= HELD * open.due as f64
            }
            None => self.answered >= HELD * f64::from(self.asked),
        }
    }

    /// How much of the load was answered, and what may help.
    fn overloaded(self, server: Option<Used>, remedy: Remedy<'_>) -> (String, String) {
        let remedy = match server.and_then(Used::busy_thread) {
            Some(share) => format!(
                "its busiest thread used {share:.2} of a CPU, and more CPUs do not help: {}",
                remedy.less()
            ),
            None => remedy.more_for_server(),
        };
        let AtRate { asked, answered, .. } = self;
        let answered = format!(
            "{answered:.0} of {asked} requests per second were answered ({})",
            self.arrivals.in_words()
        );
        let Some(open) = self.open_loop else {
            return (answered, remedy);
        };
        let share = |n: u64| percent(n as f64 / open.due.max(1) as f64);
        let in_time = self.lag().map_or_else(String::new, |Lag { percent, ns, .. }| {
            format!(", although the load was on time (p{percent} of its lag: {})", time(ns))
        });
        let mut fates = Vec::new();
        for (n, fate) in [
            (open.unsent, "were never sent, because no connection became free"),
            (open.late, "were sent late"),
            (open.timed_out, "got no reply in time"),
            (open.lost, "were lost to errors"),
        ] {
            if n > 0 {
                fates.push(format!("{} {fate}", share(n)));
            }
        }
        if let Some(wait) = open.wait_ns.p50 {
            fates.push(format!("half of the sent requests had waited {} or more", time(wait)));
        }
        (format!("{answered}{in_time}: {}", fates.join("; ")), remedy)
    }
}

/// A percentile of the lag.
#[derive(Clone, Copy, Debug)]
struct Lag {
    /// Percent, e.g. 99.
    percent: u32,
    ns: u64,
    /// The same percentile of the latency; `None` if it falls among requests without a reply.
    latency: Option<u64>,
}

impl Lag {
    fn is_long(&self) -> bool {
        // The latency of a request without a reply counts as infinite.
        let part = self.latency.map_or(0.0, |latency| self.ns as f64 / latency as f64);
        self.ns > LONG_LAG_NS && part > LONG_LAG
    }
}

/// Formats a time, with one decimal below 10: `34 µs`, `3.0 ms`.
fn time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let decimals = usize::from(value < 10.0 && unit != "ns");
    format!("{value:.decimals$} {unit}")
}
