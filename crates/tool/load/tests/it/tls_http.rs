//! HTTP over TLS: where a body ends, the latency of reopened connections, and tests against nginx.

use crate::common::{
    asks, assert_undisturbed, at, in_burst, nginx, plan, run,
    tls::{Authority, Sealed, VERSIONS, server},
};
use regatta_load::{Arrivals, Drive, Plan, Until};
use regatta_script::{Workload, dialects::http::HttpRequest};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::Shutdown,
    thread,
    time::Duration,
};

fn get(target: &str) -> Workload {
    asks(HttpRequest::get(target))
}

/// Reads a head; false at the end of input.
fn head(reader: &mut BufReader<Sealed>) -> bool {
    let mut line = String::new();
    loop {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(2) => return true,
            Ok(3..) => {}
            _ => return false,
        }
    }
}

#[test]
fn a_body_that_ends_with_the_connection_needs_a_close_notify() {
    for notifies in [true, false] {
        let authority = Authority::new();
        let config = authority.certifies(&["localhost"], 2_999).config(VERSIONS);
        let server = server(config, move |sealed, _| {
            let mut reader = BufReader::new(sealed);
            if !head(&mut reader) {
                return;
            }
            let sealed = reader.get_mut();
            sealed.write_all(b"HTTP/1.1 200 OK\r\n\r\nas long as it is").unwrap();
            if notifies {
                sealed.conn.send_close_notify();
            }
            sealed.flush().unwrap();
            let _ = sealed.sock.shutdown(Shutdown::Write);
            let _ = sealed.read(&mut [0]);
            let _ = sealed.sock.shutdown(Shutdown::Both);
        });
        let plan = Plan {
            tls: Some(authority.trusted("localhost")),
            workload: get("/"),
            host: "localhost".into(),
            until: Until::Requests(5),
            drive: Drive::Churn,
            ..plan(server.address)
        };
        let tally = run(&plan).unwrap();
        let (right, early) = if notifies { (5, 0) } else { (0, 5) };
        assert_eq!(
            (tally.requests, tally.errors.closed_early),
            (right, early),
            "{:?}",
            tally.errors
        );
        assert_eq!(tally.errors.total(), early);
    }
}

/// The window is over before the first handshake is complete.
#[test]
fn in_open_loop_latency_includes_the_handshake_of_a_reopened_connection() {
    const SLOW: Duration = Duration::from_millis(300);
    let authority = Authority::new();
    let config = authority.certifies(&["localhost"], 2_999).config(VERSIONS);
    let server = server(config, |mut sealed, _| {
        thread::sleep(SLOW);
        if sealed.conn.complete_io(&mut sealed.sock).is_err() {
            return;
        }
        let mut reader = BufReader::new(sealed);
        if head(&mut reader) {
            let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
            reader.get_mut().write_all(last).unwrap();
            reader.get_mut().flush().unwrap();
        }
    });
    let plan = Plan {
        tls: Some(authority.trusted("localhost")),
        workload: get("/"),
        host: "localhost".into(),
        connections: 4,
        drive: at(10, Arrivals::Constant),
        ..plan(server.address)
    };
    let tally = run(&plan).unwrap();
    assert_eq!((tally.errors.total(), tally.first_wrong.as_ref()), (0, None));
    let open = tally.open_loop.clone().unwrap();
    assert_eq!((open.due, tally.histogram.len()), (3, 3), "{open:?}");
    let least = open.service.min();
    assert!(least >= SLOW.as_nanos() as u64 * 9 / 10, "{least} ns");
}

#[test]
#[cfg_attr(not(has_nginx), ignore = "nginx is not installed (scripts/setup)")]
fn nginx_serves_closed_loops_churn_and_a_burst_over_tls() {
    let authority = Authority::new();
    let shown = authority.certifies(&["localhost"], 2_999);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("certificate.pem"), &shown.certificate_pem).unwrap();
    fs::write(path("key.pem"), &shown.key_pem).unwrap();
    fs::write(path("long"), vec![b'x'; 300_000]).unwrap();
    let server = format!(
        "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.2 TLSv1.3;
         location = / {{ return 200 'hello'; }}",
        path("certificate.pem"),
        path("key.pem")
    );
    let (_nginx, address) = nginx(folder.path(), "ssl", &server);
    let plan = Plan {
        tls: Some(authority.trusted("localhost")),
        host: format!("localhost:{}", address.port()),
        workload: get("/"),
        connections: 8,
        ..plan(address)
    };
    let requests = Until::Requests(500);
    for plan in [
        Plan { until: requests, ..plan.clone() },
        Plan { until: requests, pipeline: 16, threads: 2, ..plan.clone() },
        Plan { until: Until::Requests(50), drive: Drive::Churn, ..plan.clone() },
        Plan { until: Until::Requests(50), workload: get("/long"), ..plan.clone() },
        in_burst(2, 5, plan),
    ] {
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let spoken = tally.tls.clone().unwrap();
        assert!(spoken.checked && spoken.version == "1.3", "{spoken:?}");
    }
}
