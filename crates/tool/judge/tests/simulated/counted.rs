//! Simulated loads of the workload `hash`: counted ones, and small requests beside large ones.

use super::open_loop::{self, Parts};
use regatta_record::{Background, BackgroundLoad, LoadShape, Round};

/// The article's load.
pub const COUNTED: LoadShape =
    LoadShape { requests: Some(2_000), n: Some(1_000), ..LoadShape::closed(300, 1) };

/// Small requests at 200/s, and 8 large ones.
pub const FAIR: LoadShape = LoadShape {
    drive: super::open(200),
    n: Some(1),
    beside: Some(BackgroundLoad { connections: 8, n: 1_000 }),
    ..LoadShape::closed(100, 1)
};

/// Counts all requests in a busy window that starts and ends slowly, because of connecting and the
/// last replies.
pub fn count(round: &mut Round) {
    let requests = u64::from(round.load.requests.expect("a counted load"));
    let server = round.server.as_mut().expect("all simulated servers are observed");
    let cost = server.cpu_ns as f64 / round.requests as f64;
    let window = requests as f64 * cost / 0.98;
    (round.requests, round.window_ns) = (requests, window as u64);
    let cpu = requests as f64 * cost;
    (server.cpu_ns, server.user_ns, server.system_ns) =
        (cpu as u64, (cpu * 0.9) as u64, (cpu * 0.1) as u64);
    round.load_cpu_ns = (window * 0.02) as u64;
    round.slices = vec![requests / 400, requests / 100, requests / 50, requests / 400];
}

/// A server busy with `large` requests in the window's 2 s, while every small one waits `wait` ns.
pub fn beside(round: &mut Round, large: u64, wait: u64) {
    let small = Parts { wait: 0, lag: 5_000, service: 90_000 + wait };
    let parts: Vec<Parts> =
        (0..400).map(|i| Parts { service: small.service + i, ..small }).collect();
    open_loop::set(round, &parts, 0);
    let server = round.server.as_mut().expect("all simulated servers are observed");
    (server.cpu_ns, server.user_ns, server.system_ns) = (1_990_000_000, 1_900_000_000, 90_000_000);
    round.background =
        Some(Background { requests: large, window_ns: 2_000_000_000, load_cpu_ns: 10_000_000 });
}
