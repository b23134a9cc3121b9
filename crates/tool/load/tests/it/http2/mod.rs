//! HTTP/2 against servers that do one thing each, and against independent servers.

mod ends;
mod faults;
mod flow;
mod lanes;
mod latency;
mod oracles;
mod peer;
mod streams;
mod withheld;

use crate::common::{Server, plan};
use peer::{Asked, Peer};
use regatta_load::Plan;
use regatta_script::Workload;
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

/// Requests for `/N`, whose response is `item N`.
const ITEMS: &str = r#"
protocol = "http"

[[request]]
path = "/{n=int:0..99999}"
status = 200
exact = "item {n}"
"#;

/// A workload file over HTTP/2.
fn over_http2(text: &str) -> Workload {
    Workload::from_text(text, "items").unwrap().adopted("http2", false).unwrap()
}

/// One connection with four streams.
fn items(target: SocketAddr) -> Plan {
    Plan { workload: over_http2(ITEMS), host: "a.test".into(), pipeline: 4, ..plan(target) }
}

/// A server that calls `serve` with its end of each connection, and the counter of requests.
fn serving(
    settings: &'static [(u16, u32)],
    serve: impl Fn(Peer, &AtomicU64) + Send + Sync + 'static,
) -> Server {
    Server::start(move |stream, requests| {
        if let Some(peer) = Peer::new(stream, settings) {
            serve(peer, requests);
        }
    })
}

/// A server that calls `answer` with the number of each request on its connection, counted from 0.
fn server(
    settings: &'static [(u16, u32)],
    answer: impl Fn(u64, &mut Peer, Asked) + Send + Sync + 'static,
) -> Server {
    serving(settings, move |mut peer, requests| {
        for i in 0.. {
            let Some(asked) = peer.ask() else { return };
            requests.fetch_add(1, SeqCst);
            answer(i, &mut peer, asked);
        }
    })
}
