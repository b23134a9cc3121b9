//! Simulated sweeps with known truth: a queue over rates, and rates over connections that follow
//! the Universal Scalability Law.

use super::{LOAD, normal, open};
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_record::{LoadShape, Round, encode_histogram};

/// A server at requested rates. A queue (M/M/1): latency is exponentially distributed with a mean
/// of 1/(capacity − rate), so the power of its percentiles is highest at half of the capacity.
/// Rates beyond the capacity are not held.
#[derive(Clone, Copy)]
pub struct Queue {
    pub standing_ns: f64,
    pub marginal_ns: f64,
    /// Maximum requests per second.
    pub capacity: f64,
    /// Samples in each histogram.
    pub samples: u32,
}

pub const QUEUE: Queue =
    Queue { standing_ns: 3e6, marginal_ns: 5_000.0, capacity: 100_000.0, samples: 4_000 };

pub fn at(rate: u32) -> LoadShape {
    LoadShape { drive: open(rate), ..LOAD }
}

/// The drift shared by a pass, and a cell's own noise.
struct Noise {
    drifts: Vec<f64>,
    random: SmallRng,
}

impl Noise {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let drifts = (0..64).map(|_| (0.05 * normal(&mut random)).exp()).collect();
        Noise { drifts, random }
    }

    fn of(&mut self, round: &Round) -> f64 {
        self.drifts[round.round as usize] * (0.01 * normal(&mut self.random)).exp()
    }
}

/// Replaces the figures of `rounds` at their rates with those of such a queue.
pub fn queue<'a>(rounds: impl Iterator<Item = &'a mut Round>, queue: Queue, seed: u64) {
    let mut noise = Noise::new(seed);
    for r in rounds {
        let rate = f64::from(r.load.drive.rate().unwrap().get());
        let held = rate.min(queue.capacity * 0.97);
        let seconds = r.window_ns as f64 / 1e9;
        r.requests = (held * seconds) as u64;
        r.slices = vec![r.requests / 20; 20];
        r.load_cpu_ns = r.window_ns / 2;
        let cpu = (queue.standing_ns + queue.marginal_ns * held) * seconds;
        let cpu = (cpu * noise.of(r)) as u64;
        let server = r.server.as_mut().unwrap();
        (server.cpu_ns, server.user_ns, server.system_ns) = (cpu, cpu / 5, cpu / 5 * 4);
        let mean_ns = 1e9 / (queue.capacity - rate).max(100.0);
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        for _ in 0..queue.samples {
            let latency = -mean_ns * (1.0 - noise.random.random::<f64>()).ln();
            histogram.record(latency.max(1.0) as u64).unwrap();
        }
        r.histogram = encode_histogram(&histogram);
    }
}

/// Replaces the figures of `rounds` in closed loop with rates that follow the law of `[λ, σ, κ]`.
/// The server is busy, the load is not.
pub fn law<'a>(
    rounds: impl Iterator<Item = &'a mut Round>,
    [lambda, sigma, kappa]: [f64; 3],
    seed: u64,
) {
    let mut noise = Noise::new(seed);
    for r in rounds {
        let n = f64::from(r.load.connections);
        let rate = lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
        r.requests = (rate * noise.of(r) * r.window_ns as f64 / 1e9) as u64;
        r.slices = vec![r.requests / 20; 20];
        r.load_cpu_ns = r.window_ns / 2;
        r.server.as_mut().unwrap().cpu_ns = r.window_ns * 98 / 100;
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        // Little's law.
        histogram.record_n((n / rate * 1e9) as u64, r.requests).unwrap();
        r.histogram = encode_histogram(&histogram);
    }
}
