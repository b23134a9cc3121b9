//! Servers whose delays are known by construction: an open loop measures the true latencies, and a
//! closed loop misses a stall.
//!
//! The truth is the distribution of the sum of two independent values: the delay, and the latency of the
//! same server without a delay, at the same rate: both are loaded in turns, for some seconds each.

use crate::truth::stage::{Loaded, Turn, turn};
use hdrhistogram::Histogram;
use regatta_record::{Figure, Kind, Latency, decode_histogram};

const MS: f64 = 1e6;
const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// Number of parts of a load; each is a whole number of the periods of a stall.
const PARTS: u32 = 5;

/// A delay, as an option of the server and as a distribution.
#[derive(Clone, Copy)]
enum Law {
    /// Milliseconds.
    Fixed(f64),
    /// The usual and the rare delay in milliseconds, and the share of the rare one.
    Bimodal(f64, f64, f64),
    /// Length of a stall and of its period, in milliseconds.
    Stall(f64, f64),
}

impl Law {
    fn option(self) -> String {
        match self {
            Law::Fixed(delay) => format!("--delay fixed:{delay}ms"),
            Law::Bimodal(usual, rare, share) => {
                format!("--delay bimodal:{usual}ms,{rare}ms,{share}")
            }
            Law::Stall(length, every) => format!("--delay stall:{length}ms/{every}ms"),
        }
    }

    /// Returns the delay in nanoseconds that a share `q` of all requests does not exceed. A request that
    /// arrives during a stall waits until its end, a uniformly distributed time up to its length.
    fn quantile(self, q: f64) -> f64 {
        let ms = match self {
            Law::Fixed(delay) => delay,
            Law::Bimodal(usual, rare, share) => {
                if q < 1.0 - share {
                    usual
                } else {
                    rare
                }
            }
            Law::Stall(length, every) => {
                let resting = length / every;
                length * ((q - (1.0 - resting)) / resting).max(0.0)
            }
        };
        ms * MS
    }

    /// Returns the distribution of the delay plus the latency without a delay, in nanoseconds. Uses
    /// `floors` quantiles of the latter, or 20,000 if the law has only one delay.
    fn on_top_of(self, floor: &Histogram<u64>, floors: u32) -> Truth {
        const MANY: u32 = 20_000;
        let (delays, floors) = match self {
            Law::Fixed(_) => (1, MANY),
            Law::Bimodal(..) | Law::Stall(..) => (MANY, floors),
        };
        let middle = |i: u32, n: u32| (f64::from(i) + 0.5) / f64::from(n);
        let floors: Vec<f64> =
            (0..floors).map(|i| floor.value_at_quantile(middle(i, floors)) as f64).collect();
        let mut sums: Vec<f64> = (0..delays)
            .map(|i| self.quantile(middle(i, delays)))
            .flat_map(|delay| floors.iter().map(move |floor| delay + floor))
            .collect();
        sums.sort_by(f64::total_cmp);
        Truth(sums)
    }
}

/// Equally likely latencies in nanoseconds, in ascending order.
struct Truth(Vec<f64>);

impl Truth {
    fn quantile(&self, q: f64) -> f64 {
        let last = self.0.len() - 1;
        self.0[((q.clamp(0.0, 1.0) * self.0.len() as f64) as usize).min(last)]
    }
}

/// A delay, and how it is loaded.
struct Case {
    law: Law,
    rate: u32,
    arrivals: &'static str,
    seconds: u32,
}

fn load(turn: &Turn, law: Law, case: &Case) -> Loaded {
    let Case { rate, arrivals, seconds, .. } = case;
    let server = turn.server(&law.option());
    let how = format!("-c 64 -r {rate} --arrivals {arrivals} -d {seconds}s --warm-up 300ms");
    turn.load(&server, &how)
}

fn at(latency: &Latency) -> [Option<u64>; 4] {
    [latency.p50, latency.p90, latency.p99, latency.p99_9]
}

fn in_ms(ns: Option<u64>) -> String {
    ns.map_or("–".into(), |ns| format!("{:.3}", ns as f64 / MS))
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn measured_percentiles_are_the_true_ones() {
    let Some(turn) = turn() else { return };
    let (poisson, constant) = ("poisson", "constant");
    let cases = [
        Case { law: Law::Fixed(2.0), rate: 2_000, arrivals: poisson, seconds: 10 },
        Case { law: Law::Bimodal(1.0, 20.0, 0.05), rate: 2_000, arrivals: poisson, seconds: 10 },
        Case { law: Law::Stall(100.0, 1_000.0), rate: 2_000, arrivals: poisson, seconds: 10 },
        // If a tenth of the requests stalls, p90 is exactly at the edge; with a twentieth it is not.
        Case { law: Law::Stall(100.0, 2_000.0), rate: 2_000, arrivals: constant, seconds: 10 },
    ];
    let mut wrong = Vec::new();
    for case in cases {
        wrong.extend(compare(&turn, &case));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Loads the server without and with the delay in turns, prints, and returns the percentiles that are not within
/// 3% or 100 µs of the truth, and the figures that blame the generator for a stall.
fn compare(turn: &Turn, case: &Case) -> Vec<String> {
    let part = Case { seconds: case.seconds / PARTS, ..*case };
    let (mut wrong, mut floors, mut measured) = (Vec::new(), Vec::new(), empty());
    for _ in 0..PARTS {
        let floor = load(turn, Law::Fixed(0.0), &part).result;
        floors.push(decode_histogram(&floor.histogram).unwrap());
        let loaded = load(turn, case.law, &part);
        measured.add(decode_histogram(&loaded.result.histogram).unwrap()).unwrap();
        if let Law::Stall(..) = case.law {
            wrong.extend(blamed(&loaded));
        }
    }
    let mut floor = empty();
    floors.iter().for_each(|part| floor.add(part).unwrap());
    let truth = case.law.on_top_of(&floor, 50);
    let of_parts: Vec<Truth> = floors.iter().map(|floor| case.law.on_top_of(floor, 50)).collect();
    let name = case.law.option();
    println!("\n{name}, {}/s {}, 64 connections, {} s; ms", case.rate, case.arrivals, case.seconds);
    println!("         truth  measured   error");
    for q in PERCENTILES {
        // With a stall of exactly a tenth, the share of independent arrivals that it delays is random,
        // and so is the side of that edge on which p90 lies.
        let chance = match (case.law, case.arrivals) {
            (Law::Stall(length, every), "poisson") if (length / every - (1.0 - q)).abs() < 1e-9 => {
                3.0 * (q * (1.0 - q) / measured.len() as f64).sqrt()
            }
            _ => 0.0,
        };
        // What the machine adds to the slowest requests differs from part to part.
        let all = || of_parts.iter().chain([&truth]);
        let low = all().map(|truth| truth.quantile(q - chance)).fold(f64::MAX, f64::min);
        let high = all().map(|truth| truth.quantile(q + chance)).fold(0.0, f64::max);
        let low = low - (0.03 * low).max(0.1 * MS);
        let high = high + (0.03 * high).max(0.1 * MS);
        let (true_ms, own) = (truth.quantile(q) / MS, measured.value_at_quantile(q) as f64);
        let own_ms = own / MS;
        println!("p{:<5} {true_ms:8.3}  {own_ms:8.3}  {:+6.3}", q * 100.0, own_ms - true_ms);
        if !(low..=high).contains(&own) {
            let (low, high) = (low / MS, high / MS);
            let wanted = format!("instead of {low:.3} to {high:.3} ms");
            wrong.push(format!("{name}: p{} is {own_ms:.3} ms {wanted}", q * 100.0));
        }
    }
    wrong
}

fn empty() -> Histogram<u64> {
    Histogram::new(3).unwrap()
}

/// Returns the figures that blame the generator for a stall of the server.
fn blamed(loaded: &Loaded) -> Vec<String> {
    let result = &loaded.result;
    let mut wrong = Vec::new();
    let p99 = |part: &Option<Latency>| {
        part.as_ref().and_then(|part| part.p99).expect("there are enough samples") as f64 / MS
    };
    let (wait, lag, service) =
        (p99(&result.wait_ns), p99(&result.send_lag_ns), p99(&result.service_ns));
    let is_the_servers = wait.max(service) >= 30.0 && lag <= 5.0;
    if !is_the_servers {
        wrong.push(format!(
            "the stall is in lag ({lag:.3} ms at p99) instead of wait ({wait:.3} ms) and service \
             ({service:.3} ms)"
        ));
    }
    let verdict = &result.verdict;
    if verdict.kind() == Kind::GeneratorBound || verdict.voids(Figure::Latency) {
        wrong.push(format!("the verdict blames the generator: {verdict:?}"));
    }
    wrong
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn an_open_loop_shows_a_stall_and_a_closed_loop_hides_it() {
    let Some(turn) = turn() else { return };
    let wrong = stalled(&turn);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the wrong figures of a stall in an open and in a closed loop.
fn stalled(turn: &Turn) -> Vec<String> {
    let (rate, seconds) = (2_000, 10);
    let law = Law::Stall(100.0, 1_000.0);
    let open = load(turn, law, &Case { law, rate, arrivals: "poisson", seconds });
    let server = turn.server(&law.option());
    let closed = turn.load(&server, &format!("-c 64 -d {seconds}s --warm-up 300ms"));
    println!("\na stall of 100 ms in every second; ms");
    println!("             p50       p90       p99     p99.9");
    for (name, loaded) in [("closed", &closed), ("open", &open)] {
        let [p50, p90, p99, p99_9] = at(&loaded.result.latency_ns).map(in_ms);
        println!("{name:6}  {p50:>8}  {p90:>8}  {p99:>8}  {p99_9:>8}");
    }
    let p99 = |loaded: &Loaded| loaded.result.latency_ns.p99.unwrap() as f64 / MS;
    let mut wrong = blamed(&open);
    if !(70.0..110.0).contains(&p99(&open)) {
        wrong.push(format!("open: p99 is {} ms", p99(&open)));
    }
    if p99(&closed) >= 50.0 {
        wrong.push(format!("closed: p99 is {} ms", p99(&closed)));
    }
    if open.code != 0 {
        wrong.push(format!("open: the rate was not held: status {}", open.code));
    }
    wrong
}

#[test]
fn the_true_percentiles_of_a_law_are_those_of_its_distribution() {
    let mut floor = Histogram::<u64>::new(3).unwrap();
    floor.record(50_000).unwrap();
    for (law, expected) in [
        (Law::Fixed(2.0), [2.05; 4]),
        (Law::Bimodal(1.0, 20.0, 0.05), [1.05, 1.05, 20.05, 20.05]),
        (Law::Stall(100.0, 1_000.0), [0.05, 0.05, 90.05, 99.05]),
        (Law::Stall(100.0, 2_000.0), [0.05, 0.05, 80.05, 98.05]),
    ] {
        let truth = law.on_top_of(&floor, 1);
        for (q, ms) in PERCENTILES.into_iter().zip(expected) {
            let found = truth.quantile(q) / MS;
            assert!((found - ms).abs() < 0.1, "{}: {found} instead of {ms} ms", law.option());
        }
    }
}
