//! Simulated sweeps whose truth is planted: a queue over rates, and rates over connections that
//! follow the Universal Scalability Law.

use super::{LOAD, Machine, QUIET, asked, normal, rounds, truth};
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_record::{Asked, LoadShape, Round, encode_histogram};

const STANDING_NS: f64 = 3e6;
const MARGINAL_NS: f64 = 5_000.0;
/// Requests per second that the simulated server can do.
const CAPACITY: f64 = 100_000.0;
const RATES: [u32; 8] = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 75_000, 90_000];

fn at(rate: u32) -> LoadShape {
    LoadShape { rate: Some(rate), ..LOAD }
}

/// A race of one contender at these rates. A queue with one server (M/M/1): latency is
/// exponentially distributed with a mean of 1/(capacity − rate), so the power of its percentiles is
/// highest at half of the capacity. What is beyond the capacity is not held.
fn at_rates(rates: &[u32], passes: u32, seed: u64) -> (Asked, Vec<Round>) {
    at_rates_with(rates, passes, seed, 4_000)
}

fn at_rates_with(rates: &[u32], passes: u32, seed: u64, samples: u32) -> (Asked, Vec<Round>) {
    let loads: Vec<LoadShape> = rates.iter().map(|rate| at(*rate)).collect();
    let field = [truth("epoll", MARGINAL_NS)];
    let machine = Machine { samples: 1, ..QUIET };
    let mut all = rounds(&field, &loads, passes, machine, seed);
    let mut random = SmallRng::seed_from_u64(seed);
    let drifts: Vec<f64> = (0..passes).map(|_| (0.05 * normal(&mut random)).exp()).collect();
    for r in &mut all {
        let rate = f64::from(r.load.rate.unwrap());
        let held = rate.min(CAPACITY * 0.97);
        let seconds = r.window_ns as f64 / 1e9;
        r.requests = (held * seconds) as u64;
        r.load_cpu_ns = r.window_ns / 2;
        let noise = drifts[r.round as usize] * (0.01 * normal(&mut random)).exp();
        let server = r.server.as_mut().unwrap();
        server.cpu_ns = ((STANDING_NS + MARGINAL_NS * held) * noise * seconds) as u64;
        (server.user_ns, server.system_ns) = (server.cpu_ns / 5, server.cpu_ns / 5 * 4);
        r.slices = vec![r.requests / 20; 20];
        let mean_ns = 1e9 / (CAPACITY - rate).max(100.0);
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        for _ in 0..samples {
            let latency = -mean_ns * (1.0 - random.random::<f64>()).ln();
            histogram.record(latency.max(1.0) as u64).unwrap();
        }
        r.histogram = encode_histogram(&histogram);
    }
    (asked(&["epoll"], passes, &loads), all)
}

/// A race of one contender in closed loop at these connections, whose rates follow the law.
fn at_connections(
    counts: &[u32],
    [lambda, sigma, kappa]: [f64; 3],
    passes: u32,
    seed: u64,
) -> (Asked, Vec<Round>) {
    let loads: Vec<LoadShape> = counts.iter().map(|n| LoadShape::closed(*n, 1)).collect();
    let machine = Machine { samples: 1, ..QUIET };
    let mut all = rounds(&[truth("epoll", 5_000.0)], &loads, passes, machine, seed);
    let mut random = SmallRng::seed_from_u64(seed);
    let drifts: Vec<f64> = (0..passes).map(|_| (0.05 * normal(&mut random)).exp()).collect();
    for r in &mut all {
        let n = f64::from(r.load.connections);
        let rate = lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
        let noise = drifts[r.round as usize] * (0.01 * normal(&mut random)).exp();
        r.requests = (rate * noise * r.window_ns as f64 / 1e9) as u64;
        r.slices = vec![r.requests / 20; 20];
        // The server is busy, the load is not.
        r.load_cpu_ns = r.window_ns / 2;
        r.server.as_mut().unwrap().cpu_ns = r.window_ns * 98 / 100;
    }
    (asked(&["epoll"], passes, &loads), all)
}
