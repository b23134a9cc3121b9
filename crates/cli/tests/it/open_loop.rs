//! What an open loop reports whatever else the machine does. `tests/full` compares its percentiles and its lag with
//! the true ones (`truth::{delays, rates}`).

use crate::support::{Server, regatta, run};
use regatta_record::{Kind, LoadResult};

/// Runs `regatta load` against a server of `double` with these arguments. Returns its exit status and its result.
fn load(server: &Server, args: &str) -> (Option<i32>, LoadResult) {
    let ended = run(regatta!("load line://{} --json - {args}", server.addr));
    let result = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    (ended.status.code(), result)
}

#[test]
fn no_reply_comes_before_its_delay() {
    const MS: f64 = 1e6;
    for (delay, least, p90) in [("fixed:20ms", 20.0, 20.0), ("bimodal:20ms,40ms,0.5", 20.0, 40.0)] {
        let server = Server::double("epoll", &["--delay", delay]);
        let (_, result) = load(&server, "-c 64 -r 500 -d 1s --warm-up 300ms");
        assert_eq!(result.errors.total(), 0, "{:?}", result.errors);
        // Histograms keep three digits.
        assert!(result.latency_ns.min.unwrap() as f64 >= least * MS * 0.999, "{delay}: {result:?}");
        assert!(result.latency_ns.p90.unwrap() as f64 >= p90 * MS * 0.999, "{delay}: {result:?}");
    }
}

#[test]
fn a_rate_that_is_not_reached_is_reported_with_status_1() {
    const RATE: f64 = 5e6; // no machine answers as many requests of four connections, one at a time
    let server = Server::double("epoll", &[]);
    let (status, result) = load(&server, "-c 4 -r 5M -d 200ms --warm-up 50ms");
    assert_eq!(status, Some(1), "{result:?}");
    assert!(result.rate_per_s > 0.0 && result.rate_per_s < RATE / 2.0, "{result:?}");
    assert!(result.unsent > 0 && result.late > 0, "{result:?}");
    let open = result.open_loop.as_ref().expect("an open loop reports its requests");
    assert!(open.due as f64 > RATE * 0.2 / 2.0, "all due requests count: {open:?}");
    assert_ne!(result.verdict.kind(), Kind::AtAskedRate);
}
