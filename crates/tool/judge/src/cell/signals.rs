//! Signals of the machine in the rounds of one cell: steal, and threads that waited for a CPU.

use crate::statistics::{drift, median};
use regatta_record::{Machine, Round};

/// Up to this multiple of what is usual, a signal is the machine's.
const UNUSUAL: f64 = 2.0;

/// Time until a thread woken on a sleeping CPU runs, at most, in nanoseconds. It counts as
/// run-queue delay, although no other program wanted the CPU. A virtual machine takes 20 µs.
const WAKING_NS: u64 = 50_000;

/// Means over all rounds that recorded them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Share of the CPUs' time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Run-queue delay of the server's threads over the window.
    pub server_delay: Option<f64>,
    /// The same of the load threads.
    pub load_delay: Option<f64>,
    /// Share of its CPUs' time that the server certainly waited for another program: its delay
    /// minus the time that its CPUs may have taken to wake. `None` if it had several roles, or more
    /// threads than CPUs, because these wait for each other.
    pub server_waited: Option<f64>,
    /// The same for the load. It has one thread per CPU, unless several processes divide its CPUs
    /// unevenly: then `None`.
    pub load_waited: Option<f64>,
    /// Drift of the rate within the window, as a factor.
    pub drift: Option<f64>,
}

impl Signals {
    /// Reads the signals of a cell's rounds.
    pub fn of(rounds: &[&Round]) -> Signals {
        let window = |round: &Round| round.window_ns as f64;
        let steal = |r: &Round, m: Machine| Some((m.steal? * window(r), window(r)));
        let server = |r: &Round, m: Machine| Some((m.server_run_delay_ns? as f64, window(r)));
        let load = |r: &Round, m: Machine| Some((m.load_run_delay_ns? as f64, window(r)));
        let server_waited = |r: &Round, m: Machine| {
            // Roles may have their own CPUs, on which their threads wait for each other.
            let alone = r.server.as_ref().filter(|_| r.roles.is_empty());
            let server = alone.filter(|server| server.threads <= server.cpus)?;
            let waited = waited(m.server_run_delay_ns?, server.voluntary_switches);
            Some((waited as f64, window(r) * f64::from(server.usable_cpus())))
        };
        let load_waited = |r: &Round, m: Machine| {
            // Each process has the same number of threads.
            let one_each = m.load_processes.is_none_or(|n| r.load_cpus.is_multiple_of(n));
            let waited = waited(m.load_run_delay_ns?, m.load_turns?);
            one_each.then(|| (waited as f64, window(r) * f64::from(r.load_cpus)))
        };
        Signals {
            steal: share(rounds, steal),
            server_delay: share(rounds, server),
            load_delay: share(rounds, load),
            server_waited: share(rounds, server_waited),
            load_waited: share(rounds, load_waited),
            drift: drift(rounds.iter().map(|round| &round.slices[..])).map(|drift| drift.mean),
        }
    }

    /// What is usual for contenders that take turns: the median of each signal.
    pub fn usual<'a>(all: impl Iterator<Item = &'a Signals> + Clone) -> Signals {
        let of =
            |signal: fn(&Signals) -> Option<f64>| median(all.clone().filter_map(signal).collect());
        Signals {
            steal: of(|one| one.steal),
            server_delay: of(|one| one.server_delay),
            load_delay: of(|one| one.load_delay),
            server_waited: of(|one| one.server_waited),
            load_waited: of(|one| one.load_waited),
            drift: of(|one| one.drift),
        }
    }

    /// Whether a signal is beyond the usual one, so that it is not the machine's.
    pub fn is_unusual(signal: f64, usual: Option<f64>) -> bool {
        usual.is_none_or(|usual| signal > UNUSUAL * usual)
    }
}

/// Returns how long threads certainly waited for another program, in nanoseconds. They were
/// runnable without a CPU for `delay_ns` and were woken up to `turns` times.
pub fn waited(delay_ns: u64, turns: u64) -> u64 {
    delay_ns.saturating_sub(turns.saturating_mul(WAKING_NS))
}

/// Sum of the parts over the sum of the wholes, over the rounds that recorded both.
fn share(rounds: &[&Round], of: impl Fn(&Round, Machine) -> Option<(f64, f64)>) -> Option<f64> {
    let recorded = rounds.iter().filter_map(|round| of(round, round.machine?));
    let (part, whole) = recorded.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (whole > 0.0).then(|| part / whole)
}
