//! Little's law as a consistency check of the figures.

use crate::cell::observed::CellRounds;
use regatta_record::{Drive, LoadShape};

/// Residual above which a cell is doubted. Consistent figures agree within the time that the load
/// takes between reading a reply and sending again, a few percent.
pub const LITTLE: f64 = 0.10;

/// Returns mean concurrency over rate × mean latency, minus 1 (Little, *A proof for the queuing
/// formula L = λW*, Operations Research 9, 1961).
///
/// The concurrency is known only in closed loop, where the pipeline of every connection, or the bound
/// on the requests in flight, is always full. It is not known with a connection per request, a fixed
/// number of requests (connections finish one by one), or errors. `None` then, and without latencies.
/// Above 0, fewer requests were in flight than possible: connections idled, or the load was late to
/// send again. Below 0, latencies are longer than the rate permits: they do not belong to the requests
/// that were counted.
pub fn residual(load: &LoadShape, observed: &CellRounds) -> Option<f64> {
    let on_connections = f64::from(load.connections) * f64::from(load.pipeline);
    let places = match load.drive {
        Drive::Closed => on_connections,
        Drive::Bounded { in_flight } => on_connections.min(in_flight.get().into()),
        Drive::Open { .. } | Drive::Churn | Drive::Burst(_) => return None,
    };
    let latency_s = observed.latencies.all.mean? / 1e9;
    let rate = observed.requests as f64 / observed.window_s;
    (load.requests.is_none() && observed.errors.total() == 0 && rate > 0.0)
        .then(|| places / (rate * latency_s) - 1.0)
}
