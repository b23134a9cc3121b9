//! The judgement on a single load, without a race.

use super::{
    signals,
    verdict::{self, AtRate, Remedy, Used},
};
use crate::{Spent, fault};
use regatta_load::{OpenTally, Plan, Tally};
use regatta_record::{Kind, Latency, OpenLoopFigures, Outcome, Verdict};

/// Judges what came of `plan`. `server` is what the server spent inside the window, and how many
/// CPUs it had; `None` where it was not observed.
pub fn of_load(plan: &Plan, tally: &Tally, server: Option<(&Spent, u32)>) -> Verdict {
    match fault::of_replies("the server", tally) {
        Some(Outcome::Disqualified { because, .. }) => {
            return Verdict::new(Kind::Disqualified, because);
        }
        Some(Outcome::Failed { because }) => return Verdict::new(Kind::Failed, because),
        _ if tally.requests == 0 => {
            return Verdict::new(Kind::Failed, "not one right answer came");
        }
        _ => {}
    }
    let threads = plan.threads as u32;
    let remedy = Remedy::Load { threads };
    let window_ns = tally.window_ns.max(1) as f64;
    let load = load_used(tally, threads, window_ns);
    let server = server.map(|(spent, cpus)| server_used(spent, cpus, window_ns));
    match plan.rate {
        None => {
            let noise = verdict::disturbed(None, server, Some(load), remedy);
            let limit = verdict::limit(server, Some(load), None, remedy);
            verdict::together(noise.into_iter().chain([limit]))
        }
        Some(asked) => {
            let open_loop = tally.open_loop.as_ref().map(figures);
            let unanswered = tally.open_loop.as_ref().map_or(0, OpenTally::unanswered);
            let at_rate = AtRate {
                asked: asked.get(),
                arrivals: plan.arrivals,
                answered: tally.requests as f64 * 1e9 / window_ns,
                open_loop: open_loop.as_ref(),
                latency: &Latency::of_censored(&tally.histogram, unanswered),
                rounds: 1,
            };
            let noise = verdict::disturbed(None, server, None, remedy);
            let at_rate = at_rate.verdict(server, Some(load), remedy);
            verdict::together(noise.into_iter().chain([at_rate]))
        }
    }
}

fn load_used(tally: &Tally, threads: u32, window_ns: f64) -> Used {
    let whole = window_ns * f64::from(threads);
    let waited = tally.load_run_delay_ns.zip(tally.load_turns);
    let waited = waited.map(|(delay, turns)| signals::waited(delay, turns) as f64 / whole);
    let fraction = (tally.load_cpu_ns - tally.spun_ns) as f64 / whole;
    Used { fraction, cpus: threads, waited }
}

fn figures(open: &OpenTally) -> OpenLoopFigures {
    OpenLoopFigures {
        due: open.due,
        unsent: open.unsent,
        late: open.late,
        timed_out: open.timed_out,
        lost: open.lost,
        wait_ns: Latency::of(&open.wait),
        send_lag_ns: Latency::of(&open.lag),
        service_ns: Latency::of(&open.service),
        misshapen: u32::from(!open.arrivals.kept),
    }
}

fn server_used(spent: &Spent, cpus: u32, window_ns: f64) -> Used {
    // It cannot be busy on more CPUs than it has threads.
    let usable = cpus.min(spent.threads).max(1);
    let whole = window_ns * f64::from(usable);
    // More threads than CPUs wait for each other.
    let delay = spent.run_delay_ns.filter(|_| spent.threads <= cpus);
    let waited = delay.map(|delay| signals::waited(delay, spent.voluntary_switches));
    Used {
        fraction: spent.cpu_ns as f64 / whole,
        cpus: usable,
        waited: waited.map(|ns| ns as f64 / whole),
    }
}
