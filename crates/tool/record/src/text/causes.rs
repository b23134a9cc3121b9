//! The sentences of causes.

use crate::{
    judged::cause::{BothUsed, Cause, Fates, LagSeen, Late, Missed, NetworkFull, Side, SideUsed},
    text::joined::joined,
};
use std::fmt;

impl fmt::Display for Cause {
    #[expect(clippy::too_many_lines, reason = "a sentence for each cause")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Message { text } => f.write_str(text),
            Cause::Used(used) => used.fmt(f),
            Cause::BusyThread(used) => {
                write!(f, "{used}: that thread is the limit, and more CPUs do not help")
            }
            Cause::BothBusy(used) => write!(f, "{used}: the rate is a lower bound"),
            Cause::Waited(used) => {
                write!(f, "{used}; the time was spent waiting, connecting included")
            }
            Cause::NullNoFaster { used, null_rate } => write!(
                f,
                "neither side was busy ({used}), and the null server reaches only {null_rate:.2} times the \
                 rate: both servers wait for the load or for the kernel, so this rate is not the server's limit"
            ),
            Cause::Network { used, network } => {
                write!(f, "neither side was busy ({used}), and {network}")
            }
            Cause::Starved { used, by_other_side } => {
                write!(f, "{used}; {}", starved(used.load, *by_other_side))
            }
            Cause::ServerNotSeen { load, starved_by_other_side } => {
                write!(f, "no process of the server was observed; load busy {load}")?;
                match starved_by_other_side {
                    Some(by_other_side) => write!(f, "; {}", starved(*load, *by_other_side)),
                    None => Ok(()),
                }
            }
            Cause::BelowNull { of_null } => write!(
                f,
                "its processes took {:.1}% of the CPU time that the null server takes for the same requests, \
                 which is less than TCP itself takes: processes outside the contender did the work",
                of_null * 100.0
            ),
            Cause::OwedToNobody { share } => write!(
                f,
                "{} of the deliveries were owed to nobody, because connections of members were lost: rate and latency \
                 are void",
                percent(*share)
            ),
            Cause::Shared { shared_cpus, missed } => shared(f, shared_cpus, *missed),
            Cause::Stolen { steal } => {
                write!(f, "the hypervisor gave {} of the CPUs' time to others", percent(*steal))
            }
            Cause::CpuTaken { side, waited, by_other_side } => {
                f.write_str(&taken(*side, *waited, *by_other_side))
            }
            Cause::Drift { drift, drift_low, drift_high, usual, rounds } => {
                let percent = |factor: f64| (factor - 1.0) * 100.0;
                let usual = usual.map(|usual| format!(" (usual here: {:+.0}%)", percent(usual)));
                write!(
                    f,
                    "the rate drifts by {:+.0}% [{:+.0} to {:+.0}]{} from the first third of the window to the \
                     last, over {rounds} rounds",
                    percent(*drift),
                    percent(*drift_low),
                    percent(*drift_high),
                    usual.unwrap_or_default()
                )
            }
            Cause::Held { asked_per_s, arrivals, lag, .. } => {
                write!(f, "{asked_per_s} requests per second, {}", arrivals.in_words())?;
                match lag {
                    Some(LagSeen { percent, ns }) => {
                        let ns = time(*ns);
                        write!(f, "; {percent}% were sent within {ns} of their due time")
                    }
                    None => Ok(()),
                }
            }
            Cause::NotHeld { missed, arrivals, lag, fates } => {
                write!(f, "{missed} ({})", arrivals.in_words())?;
                if let (Some(LagSeen { percent, ns }), Some(_)) = (lag, fates) {
                    let ns = time(*ns);
                    write!(f, ", although the load was on time (p{percent} of its lag: {ns})")?;
                }
                fates.map_or(Ok(()), |fates| write!(f, ": {fates}"))
            }
            Cause::LateSends { late, server, load, missed, arrivals, starved_by_other_side } => {
                write!(f, "{late}")?;
                if let (Some(server), Some(load)) = (*server, *load) {
                    write!(f, " ({})", BothUsed { server, load })?;
                }
                let Missed { asked_per_s, answered_per_s } = missed;
                write!(
                    f,
                    ", at {asked_per_s} requests per second, {} ({answered_per_s:.0} were answered)",
                    arrivals.in_words()
                )?;
                match (load, starved_by_other_side) {
                    (Some(load), Some(by_other_side)) => {
                        write!(f, "; {}", starved(*load, *by_other_side))
                    }
                    _ => Ok(()),
                }
            }
            Cause::LateBesideBusy { late } => write!(f, "{late}: latency is void"),
            Cause::InFlight { requests, of } => write!(
                f,
                "{requests:.1} of {of} requests were in flight on average (rate × mean latency): latency is void"
            ),
            Cause::AlsoAnswered { beside_per_s } => write!(
                f,
                "the server also answered {beside_per_s:.1} large requests per second: cost is void"
            ),
        }
    }
}

impl fmt::Display for NetworkFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkFull::Line { of, interface, bits_per_s, line_bits_per_s } => write!(
                f,
                "{interface} of the {}'s machine carried {:.3} Gbit/s of the {} Gbit/s that it reports as its speed",
                match of {
                    Side::Server => "server",
                    Side::Load => "load",
                },
                bits_per_s / 1e9,
                *line_bits_per_s as f64 / 1e9
            ),
        }
    }
}

fn shared(f: &mut fmt::Formatter<'_>, cpus: &[u32], missed: Option<Missed>) -> fmt::Result {
    let plural = if cpus.len() == 1 { "" } else { "s" };
    write!(f, "server and load share CPU{plural} {}", joined(cpus, ", "))?;
    missed.map_or(Ok(()), |missed| write!(f, "; {missed}"))
}

/// That others took the CPU of a side for a share of the window.
fn taken(side: Side, waited: f64, by_other_side: bool) -> String {
    let (side, other) = match side {
        Side::Server => ("server", "load"),
        Side::Load => ("load", "server"),
    };
    let others = match by_other_side {
        true => format!("the {other} or another program"),
        false => "another program".to_owned(),
    };
    format!("{others} took the {side}'s CPU ({} of the window spent waiting)", percent(waited))
}

fn starved(load: SideUsed, by_other_side: bool) -> String {
    taken(Side::Load, load.waited.unwrap_or(0.0), by_other_side)
}

impl fmt::Display for SideUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SideUsed { busy, cpus, busy_thread, .. } = self;
        match cpus {
            1 => write!(f, "{busy:.2}")?,
            _ => write!(f, "{busy:.2} of {cpus} CPUs")?,
        }
        busy_thread.map_or(Ok(()), |share| write!(f, ", its busiest thread {share:.2} of one"))
    }
}

impl fmt::Display for BothUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server busy {}, load {}", self.server, self.load)
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missed { asked_per_s, answered_per_s } = self;
        write!(f, "{answered_per_s:.0} of {asked_per_s} requests per second were answered")
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Late::Lag(LagSeen { percent, ns }) => write!(
                f,
                "the load itself was late: {}% of the sends were late by {} or more",
                100 - percent,
                time(*ns)
            ),
            Late::Misshapen { seen, of } => {
                write!(
                    f,
                    "in {seen} of {of} starts the sends did not have the requested arrival times"
                )
            }
            Late::NoCpu => f.write_str("the load had no CPU left"),
        }
    }
}

impl fmt::Display for Fates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fates { unsent, late, timed_out, lost, refused, wait_p50_ns } = *self;
        let fates = [
            (unsent, "were never sent, because no connection became free"),
            (late, "were sent late"),
            (timed_out, "got no reply in time"),
            (lost, "were lost to errors"),
            (refused, "were refused"),
        ];
        let seen = fates.iter().filter(|(share, _)| *share > 0.0);
        let mut texts: Vec<String> =
            seen.map(|(share, fate)| format!("{} {fate}", percent(*share))).collect();
        texts.extend(
            wait_p50_ns
                .map(|ns| format!("half of the sent requests had waited {} or more", time(ns))),
        );
        f.write_str(&texts.join("; "))
    }
}

/// `3.2%`, `12%`.
fn percent(fraction: f64) -> String {
    let decimals = usize::from(fraction < 0.0995);
    format!("{:.decimals$}%", fraction * 100.0)
}

/// Formats a time, with one decimal below 10: `34 µs`, `3.0 ms`.
pub(super) fn time(ns: u64) -> String {
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
