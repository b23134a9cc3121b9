//! Simulated open loops: rounds with known waits, lags and service times.

use super::normal;
use hdrhistogram::Histogram;
use rand::{SeedableRng, rngs::SmallRng};
use regatta_record::{ArrivalCheck, OpenLoop, Round, encode_histogram};

/// The parts of a request's latency, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub wait: u64,
    pub lag: u64,
    pub service: u64,
}

/// The parts of `samples` requests: the median of service is 40 µs, that of lag 5 µs, and none
/// waits.
pub fn quiet(samples: u64, seed: u64) -> Vec<Parts> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut around = |median: f64| (median * (0.35 * normal(&mut random)).exp()) as u64;
    (0..samples)
        .map(|_| Parts { wait: 0, lag: around(5_000.0), service: around(40_000.0) })
        .collect()
}

/// Turns `round` into one of an open loop of 2 s in which `requests` were answered and `unsent`
/// were not sent. Server and load used little CPU.
pub fn set(round: &mut Round, requests: &[Parts], unsent: u64) {
    let rate = (requests.len() as u64 + unsent) / 2;
    let text = |of: fn(&Parts) -> u64| {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 120_000_000_000, 3).unwrap();
        requests.iter().for_each(|parts| histogram.record(of(parts)).unwrap());
        encode_histogram(&histogram)
    };
    let server = round.server.as_mut().expect("all simulated servers are observed");
    let of = requests.len() as f64 / round.requests as f64;
    for ns in [&mut server.cpu_ns, &mut server.user_ns, &mut server.system_ns] {
        *ns = (*ns as f64 * of) as u64;
    }
    round.load_cpu_ns = (round.load_cpu_ns as f64 * of) as u64;
    round.requests = requests.len() as u64;
    round.window_ns = 2_000_000_000;
    round.slices = vec![round.requests / 20; 20];
    round.histogram = text(|parts| parts.wait + parts.lag + parts.service);
    round.open_loop = Some(OpenLoop {
        due: requests.len() as u64 + unsent,
        unsent,
        late: requests.iter().filter(|p| p.wait + p.lag > OpenLoop::LATE_NS).count() as u64,
        timed_out: 0,
        lost: 0,
        refused: 0,
        wait: text(|parts| parts.wait),
        lag: text(|parts| parts.lag),
        service: text(|parts| parts.service),
        arrivals: ArrivalCheck {
            gaps: requests.len() as u64,
            rate_per_s: rate as f64,
            distance: 0.004,
            lag1: 0.001,
            unsteadiness: 0.02,
            kept: true,
        },
        spin_ns: 0,
    });
}
