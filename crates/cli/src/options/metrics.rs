//! The server of a page with metrics.

use crate::output;
use regatta_serve::Host;
use std::{net::SocketAddr, num::NonZeroUsize, time::Duration};

/// Limits of the page, so that idle connections do not block its readers: a place is free before a scrape of
/// Prometheus times out (after 10 s).
const CONNECTIONS: usize = 64;
const IDLE: Duration = Duration::from_secs(5);

/// Returns the address and limits of the page with the metrics of a server.
pub fn metrics_host(listen: SocketAddr, host: &Host) -> Host {
    let mut limits = host.limits;
    limits.idle = limits.idle.min(IDLE);
    limits.request = limits.request.min(IDLE);
    Host {
        listen,
        cores: NonZeroUsize::MIN,
        limits,
        connections: CONNECTIONS,
        inherited: None,
        offload: None,
        on_ready: |addr| output::message(&format!("metrics at http://{addr}/metrics")),
        ..host.clone()
    }
}
