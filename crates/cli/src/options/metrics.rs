//! The server of the pages for operators: metrics, `/live` and `/ready`.

use crate::output;
use regatta_serve::{Host, Stop};
use std::{io, net::SocketAddr, time::Duration};

/// Limits of the pages, so that idle connections do not block its readers: a place is free before a scrape of
/// Prometheus times out (after 10 s).
const CONNECTIONS: usize = 64;
const IDLE: Duration = Duration::from_secs(5);
/// How long a request for a page may delay the end of the process.
const GRACE: Duration = Duration::from_secs(1);

/// Returns the address and limits of the pages of a server. They have a stop of their own, because they are served
/// until the clients of the server are drained.
pub fn metrics_host(listen: SocketAddr, host: &Host) -> io::Result<Host> {
    let mut limits = host.limits;
    limits.idle = limits.idle.min(IDLE);
    limits.request = limits.request.min(IDLE);
    Ok(Host {
        limits,
        connections: CONNECTIONS,
        grace: host.grace.min(GRACE),
        on_ready: |addr| output::message(&format!("metrics at http://{addr}/metrics")),
        ..Host::new(listen, Stop::new()?)
    })
}
