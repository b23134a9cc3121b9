//! Little's law as a check of the figures against each other.

use crate::observed::Observed;
use regatta_record::{Drive, LoadShape};

/// Residual from which on it is a doubt: figures that agree with each other do so within the time
/// that the load takes between reading a reply and sending again, some percent.
pub const LITTLE: f64 = 0.10;

/// Mean concurrency over rate × mean latency, less 1 (Little, *A proof for the queuing formula
/// L = λW*, Operations Research 9, 1961).
///
/// The concurrency is known in closed loop alone, where every connection has its pipeline full all
/// the time; with a connection per request, a count of requests (which ends one by one), or errors,
/// it is not. Above 0, requests were outstanding for less time than there were places for them:
/// connections idled, or the load was late to send again. Below 0, latencies are longer than the
/// rate permits: they are not those of the requests that were counted.
pub fn residual(load: &LoadShape, observed: &Observed) -> Option<f64> {
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
