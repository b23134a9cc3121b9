//! Little's law as a consistency check of the figures.

use crate::cell::observed::CellRounds;
use regatta_record::{Cause, Drive, Kind, LoadShape, Verdict};

/// Residual from which latencies are void. Consistent figures agree within the time that the load
/// takes between reading a reply and sending again, a few percent.
const LITTLE: f64 = 0.10;

/// Returns mean concurrency over rate × mean latency, minus 1 (Little, *A proof for the queuing
/// formula L = λW*, Operations Research 9, 1961).
///
/// Above 0, fewer requests were in flight than the load asks for: connections idled, e.g. at the end of each
/// slice, or the load was late to send again. Below 0, latencies are longer than the rate permits: they do not belong
/// to the requests that were counted. `None` if the concurrency is not known, and without latencies.
pub fn residual(load: &LoadShape, observed: &CellRounds) -> Option<f64> {
    Some(asked(load, observed)? as f64 / seen(observed)? - 1.0)
}

/// The finding that latencies belong to a load with more or fewer requests in flight.
pub fn in_flight(load: &LoadShape, observed: &CellRounds) -> Option<Verdict> {
    residual(load, observed).filter(|residual| residual.abs() >= LITTLE)?;
    let cause = Cause::InFlight { requests: seen(observed)?, of: asked(load, observed)? };
    Some(Verdict::new(Kind::InFlight, cause).with_remedy("for latencies, set a `rate`"))
}

/// The number of requests in flight that a load asks for. It is known only in closed loop, where the pipeline of every
/// connection, or the bound on the requests in flight, is always full. It is not known with a connection per request,
/// a fixed number of requests (connections finish one by one), or errors.
fn asked(load: &LoadShape, observed: &CellRounds) -> Option<u64> {
    let on_connections = u64::from(load.connections) * u64::from(load.pipeline);
    let places = match load.drive {
        Drive::Closed => on_connections,
        Drive::Bounded { in_flight } => on_connections.min(in_flight.get().into()),
        Drive::Open { .. } | Drive::Churn | Drive::Burst(_) => return None,
    };
    (load.requests.is_none() && observed.errors.total() == 0).then_some(places)
}

/// The mean number of requests in flight, by Little's law.
fn seen(observed: &CellRounds) -> Option<f64> {
    let rate = observed.requests as f64 / observed.window_s;
    (rate > 0.0).then_some(rate * observed.latencies.all.mean? / 1e9)
}
