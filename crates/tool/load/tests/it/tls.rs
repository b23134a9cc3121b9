//! TLS under load: most kinds of load over TLS, accepted and rejected certificates, and records split at
//! many places.

use crate::common::{
    Called, Server, assert_undisturbed, at, in_burst, plan, run,
    tls::{Authority, VERSIONS, answer, double_server, server},
};
use regatta_load::{Arrivals, Drive, Error, Plan, Roots, Tls, Until};
use rustls::version;
use std::{
    io::{BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// A correct server, and the plan of a load that trusts it.
fn pair() -> (Server, Plan) {
    let authority = Authority::new();
    let server = double_server(authority.certifies(&["localhost"], 2_999).config(VERSIONS));
    let plan = Plan { tls: Some(authority.trusted("localhost")), ..plan(server.address) };
    (server, plan)
}

/// The TLS error of a load that cannot run.
fn refusal(plan: &Plan) -> String {
    match run(plan) {
        Err(Error::Tls(text)) => text,
        other => panic!("expected a TLS error, got {other:?}"),
    }
}

#[test]
fn closed_loop_and_pipelining_pass_with_every_version() {
    for version in [&version::TLS12, &version::TLS13] {
        for pipeline in [1, 16] {
            let authority = Authority::new();
            let config = authority.certifies(&["localhost"], 2_999).config(&[version]);
            let server = double_server(config);
            let tls = Some(authority.trusted("localhost"));
            let plan = Plan { tls, connections: 8, pipeline, threads: 2, ..plan(server.address) };
            let tally = run(&plan).unwrap();
            assert_undisturbed(&tally);
            assert_eq!(tally.connections_opened, 8);
            assert!(server.requests() > tally.requests);
        }
    }
}

#[test]
fn churn_does_a_full_handshake_for_every_request() {
    let authority = Authority::new();
    let config = authority.certifies(&["127.0.0.1"], 2_999).config(VERSIONS);
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let seen = kinds.clone();
    let server = server(config, move |sealed, requests| {
        let mut reader = BufReader::new(sealed);
        answer(&mut reader, requests, 1);
        seen.lock().unwrap().push(reader.get_ref().conn.handshake_kind());
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the load sends close_notify and closes");
    });
    let tls = Some(authority.trusted("127.0.0.1"));
    let until = Until::Requests(30);
    let plan = Plan { tls, drive: Drive::Churn, connections: 4, until, ..plan(server.address) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!((tally.requests, tally.connections_opened), (30, 30));
    assert_eq!(server.accepted.load(SeqCst), 30);
    drop(server);
    let kinds = kinds.lock().unwrap();
    assert_eq!(kinds.len(), 30);
    assert!(kinds.iter().all(|kind| *kind == Some(rustls::HandshakeKind::Full)), "{kinds:?}");
}

#[test]
fn an_open_loop_and_a_burst_pass() {
    let (_server, plan) = pair();
    let drive = at(500, Arrivals::Poisson);
    let tally = run(&Plan { drive, connections: 4, ..plan.clone() }).unwrap();
    assert_undisturbed(&tally);
    assert!(tally.open_loop.is_some());
    let tally = run(&in_burst(2, 10, Plan { connections: 8, pipeline: 3, ..plan })).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(tally.requests, 80);
}

/// More bytes than the socket buffers hold, and many records in one read.
#[test]
fn a_deep_pipeline_loses_nothing() {
    let (server, plan) = pair();
    let until = Until::Requests(200_000);
    let tally = run(&Plan { until, pipeline: 60_000, ..plan }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!((tally.requests, server.requests()), (200_000, 200_000));
}

#[test]
fn latency_excludes_the_handshake_of_a_kept_connection() {
    const SLOW: Duration = Duration::from_millis(300);
    let authority = Authority::new();
    let config = authority.certifies(&["localhost"], 2_999).config(VERSIONS);
    let server = server(config, |mut sealed, requests| {
        thread::sleep(SLOW);
        if sealed.conn.complete_io(&mut sealed.sock).is_ok() {
            answer(&mut BufReader::new(sealed), requests, 10);
        }
    });
    let tls = Some(authority.trusted("localhost"));
    let until = Until::Requests(1);
    for drive in [Drive::Closed, Drive::Churn] {
        let plan = Plan { tls: tls.clone(), until, drive, ..plan(server.address) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let took = Duration::from_nanos(tally.histogram.max());
        assert_eq!(took >= SLOW, drive.churns(), "{took:?}");
    }
}

#[test]
fn a_rejected_certificate_ends_the_run_with_the_reason() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = || authority.certifies(&["example.org", "localhost"], 2_999);
    for (shown, tls, expected) in [
        (
            good(),
            authority.trusted("example.com"),
            "expected a certificate for example.com, got one for example.org, localhost",
        ),
        (authority.certifies(&["localhost"], 2_001), authority.trusted("localhost"), "it expired"),
        (good(), other.trusted("localhost"), "is in the file of --cacert"),
        (
            Authority::new().self_signed(),
            other.trusted("localhost"),
            "the file of --cacert does not contain it",
        ),
        (good(), Tls::new("localhost", &Roots::System).unwrap(), "not signed by a trusted CA"),
    ] {
        let server = double_server(shown.config(VERSIONS));
        for drive in [Drive::Closed, Drive::Churn] {
            let tls = Some(tls.clone());
            let plan = Plan { tls, drive, connections: 20, ..plan(server.address) };
            let text = refusal(&plan);
            assert!(text.contains(expected) && text.contains("--insecure"), "{text}");
        }
        let tls = Some(Tls::new("example.com", &Roots::Unchecked).unwrap());
        assert_undisturbed(&run(&Plan { tls, ..plan(server.address) }).unwrap());
    }
}

#[test]
fn a_server_that_does_not_speak_tls_is_reported() {
    let plain = Server::start(|mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let tls = Some(Tls::new("localhost", &Roots::System).unwrap());
    let text = refusal(&Plan { tls, ..plan(plain.address) });
    assert!(text.contains("expected TLS"), "{text}");
}

/// Each of two threads has a connection. One is answered; the other receives bytes that are not TLS, and
/// is reopened.
#[test]
fn one_tls_failure_does_not_end_a_run_in_which_another_thread_was_answered() {
    let authority = Authority::new();
    let config = authority.certifies(&["localhost"], 2_999).config(VERSIONS);
    let (answered, fails) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
    let seen = answered.clone();
    let server = Server::numbered(move |number, mut stream, requests| {
        let deadline = Instant::now() + Duration::from_secs(8);
        while number > 0 && !seen.load(SeqCst) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        if number > 0 && fails.swap(false, SeqCst) {
            let _ = stream.write_all(b"no TLS at all\r\n");
            let _ = stream.shutdown(Shutdown::Write);
            while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
            return;
        }
        let connection = rustls::ServerConnection::new(config.clone()).unwrap();
        let sealed = rustls::StreamOwned::new(connection, stream);
        answer(&mut BufReader::new(sealed), requests, u64::MAX);
    });
    let tls = Some(authority.trusted("localhost"));
    let plan = Plan { tls, connections: 2, threads: 2, ..plan(server.address) };
    let mut on_progress = |progress: &regatta_load::Progress| {
        answered.fetch_or(progress.replies > 0, SeqCst);
    };
    let stop = AtomicBool::new(false);
    let tally = regatta_load::run(&plan, &mut Called::default(), &mut on_progress, &stop).unwrap();
    assert_eq!((tally.errors.connect, tally.errors.total()), (1, 1), "{:?}", tally.errors);
    assert_eq!(tally.connections_opened, 2);
}

#[test]
fn a_file_without_certificates_and_an_invalid_host_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let roots = Roots::File(file.path().to_owned());
    let text = Tls::new("localhost", &roots).unwrap_err().to_string();
    assert!(text.contains("it contains no certificate"), "{text}");
    let text = Tls::new("no host", &Roots::Unchecked).unwrap_err().to_string();
    assert!(text.contains("neither a host name nor an IP address"), "{text}");
}

/// The `close_notify` may come with the last bytes, and then the poller does not report it separately.
#[test]
fn a_close_notify_without_a_close_ends_the_connection() {
    let authority = Authority::new();
    let config = authority.certifies(&["localhost"], 2_999).config(VERSIONS);
    let server = server(config, |sealed, requests| {
        let mut reader = BufReader::new(sealed);
        answer(&mut reader, requests, 1);
        let sealed = reader.get_mut();
        sealed.conn.send_close_notify();
        sealed.flush().unwrap();
        let _ = sealed.read(&mut [0]);
    });
    let tls = Some(authority.trusted("localhost"));
    let until = Until::Requests(3);
    let tally = run(&Plan { tls, until, ..plan(server.address) }).unwrap();
    let ends = tally.errors.closed_early + tally.errors.closed_idle;
    assert!(ends > 0, "{:?}", tally.errors);
    assert_eq!(tally.errors.total(), ends, "no request timed out");
}

/// A proxy that forwards bytes in pieces of `size`, in both directions.
fn cutting(target: std::net::SocketAddr, size: usize) -> Server {
    Server::start(move |stream, _| {
        let server = TcpStream::connect(target).unwrap();
        server.set_nodelay(true).unwrap();
        let hand_on = move |mut from: TcpStream, mut to: TcpStream| {
            let mut buffer = [0; 1 << 16];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                for piece in buffer[..n].chunks(size) {
                    if to.write_all(piece).is_err() {
                        return;
                    }
                    if size < 100 {
                        // Lets the other side read, so that pieces are not merged.
                        thread::yield_now();
                    }
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        };
        let (from, to) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
        let there = thread::spawn(move || hand_on(from, to));
        hand_on(server, stream);
        there.join().unwrap();
    })
}

#[test]
fn records_may_be_split_anywhere() {
    let (server, plan) = pair();
    for size in [1, 64, 1 << 16] {
        let proxy = cutting(server.address, size);
        let until = Until::Requests(if size < 10 { 50 } else { 500 });
        let target = proxy.address;
        for (drive, pipeline) in [(Drive::Closed, 16), (Drive::Churn, 1)] {
            let until = if drive.churns() { Until::Requests(2) } else { until };
            let plan = Plan { target, until, drive, pipeline, connections: 2, ..plan.clone() };
            assert_undisturbed(&run(&plan).unwrap());
        }
    }
}
