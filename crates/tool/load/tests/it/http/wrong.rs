//! Servers that send something other than HTTP, or wrong HTTP: they are disqualified with a reason.

use crate::{
    common::{Server, asks, run, workload},
    http::{get, server},
};
use regatta_load::{Drive, Plan, Tally, Until};
use regatta_script::dialects::http::{Content, HttpRequest};
use std::{io::Write, net::Shutdown, time::Duration};

fn wrong(plan: &Plan) -> Tally {
    let plan = Plan { until: Until::Elapsed(Duration::from_secs(20)), ..plan.clone() };
    let tally = run(&plan).unwrap();
    assert!(tally.errors.wrong_reply >= 1 && !tally.interrupted && !tally.server_died);
    tally
}

/// The Twisted server of an old article writes bare text without reading the request, and closes. So a
/// reset answers the request. `ab` reported a rate for it.
#[test]
fn text_without_http_is_wrong_even_if_a_reset_follows() {
    for plan in [
        |plan: Plan| Plan { connections: 20, drive: Drive::Churn, ..plan },
        |plan: Plan| Plan { connections: 5, ..plan },
    ] {
        let server = Server::start(|mut stream, _| {
            let _ = stream.write_all(b"Hello. The time is 1000");
            let _ = stream.shutdown(Shutdown::Both);
        });
        let hello = Plan { workload: workload("hello"), ..get(server.address) };
        let exchange = wrong(&plan(hello)).first_wrong.unwrap();
        let reason = "Expected a status line: HTTP/1.1, three digits, a reason.";
        assert!(exchange.received.starts_with("Hello. The time is 1000"), "{exchange:?}");
        assert!(exchange.received.contains(reason), "{exchange:?}");
    }
}

#[test]
fn the_exchange_is_reported_with_its_place_on_the_connection() {
    let server = server(|i, _| {
        let content = if i == 30 { "no" } else { "ok" };
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{content}"), false)
    });
    let mut request = HttpRequest::get("/");
    request.expected.content = Content::Text;
    request.text = b"ok".to_vec();
    let workload = asks(request);
    for pipeline in [1, 7] {
        let plan = Plan { workload: workload.clone(), pipeline, ..get(server.address) };
        let exchange = wrong(&plan).first_wrong.unwrap();
        assert_eq!(exchange.reply_index, 30);
        assert!(exchange.sent.starts_with("GET / HTTP/1.1\\r\\nHost: 127.0.0.1:"));
        assert_eq!(exchange.expected, "a status from 200 to 299, the content ok");
        assert!(exchange.received.starts_with("the content no, in HTTP/1.1 200 OK"));
    }
}

#[test]
fn a_wrong_clock_is_found() {
    let server = server(|_, _| {
        let content = "Hello. The time is 1000";
        (format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len()), false)
    });
    let plan = Plan { workload: workload("hello"), ..get(server.address) };
    let exchange = wrong(&plan).first_wrong.unwrap();
    assert!(exchange.expected.contains("of this machine's clock"), "{exchange:?}");
}
