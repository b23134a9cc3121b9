//! Slow clients against servers with a known behaviour.

use crate::common::{
    Server,
    slow::{OK, bytes_sent, ms, plan, request, run},
};
use regatta_load::{SlowPlan, run_slow};
use regatta_script::dialects::http::SlowPart;
use regatta_testkit::client::refusing;
use std::{
    io::{Read, Write},
    net::Shutdown,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";

/// Closes connections whose request takes longer than `limit`, after sending `word`.
fn closing(limit: Duration, word: &'static [u8]) -> Server {
    Server::start(move |mut stream, _| {
        let reply = if request(&stream, limit).is_some() { OK } else { word };
        let _ = stream.write_all(reply);
        let _ = stream.shutdown(Shutdown::Write);
        // Reads further bytes, so that no reset overtakes the reply.
        let _ = stream.set_read_timeout(Some(ms(1_000)));
        while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
        let _ = stream.shutdown(Shutdown::Both);
    })
}

#[test]
fn closed_slow_connections_are_reported_with_age_and_status() {
    const LIMIT: u64 = 1_000;
    for (word, status) in [(TOO_SLOW, Some(408)), (&b""[..], None)] {
        let server = closing(ms(LIMIT), word);
        let tally = run(&SlowPlan { longest: ms(20_000), ..plan(&server) });
        assert_eq!((tally.opened, tally.refused, tally.alive), (20, 0, 0));
        assert_eq!(tally.statuses.into_iter().collect::<Vec<_>>(), [(status, 20)]);
        assert_eq!(tally.closed_ns.len(), 20);
        assert!(tally.closed_ns.is_sorted() && tally.closed_ns[0] >= (LIMIT - 20) * 1_000_000);
        assert!(!tally.served.is_empty() && tally.failed == 0, "{:?}", tally.first_failure);
        assert!(tally.took_ns < 20_000_000_000, "it ends when all are closed");
    }
}

#[test]
fn a_server_that_never_closes_keeps_all_slow_connections() {
    let server = closing(ms(60_000), b"");
    let tally = run(&plan(&server));
    assert_eq!((tally.opened, tally.alive, tally.closed_ns.len()), (20, 20, 0));
    assert!(!tally.served.is_empty() && tally.failed == 0, "{:?}", tally.first_failure);
    assert!(tally.took_ns >= 1_000_000_000);
}

#[test]
fn a_server_that_serves_one_at_a_time_serves_no_new_client() {
    let turn = Mutex::new(());
    let server = Server::start(move |mut stream, _| {
        let _mine = turn.lock();
        if request(&stream, ms(60_000)).is_some() {
            let _ = stream.write_all(OK);
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    // The first new client may connect before the first slow one.
    let tally = run(&SlowPlan { longest: ms(1_500), timeout: ms(300), ..plan(&server) });
    assert!(tally.served.len() <= 1 && tally.failed > 0, "{} served", tally.served.len());
    assert!(tally.first_failure.unwrap().contains("no complete reply within 300ms"));
}

#[test]
fn a_client_with_a_wrong_reply_is_not_served() {
    for (reply, expected) in [
        (&b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"[..], "got HTTP/1.1 503"),
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"[..],
            "closed the connection before a complete reply",
        ),
        (&b"220 mail\r\n\r\n"[..], "malformed"),
    ] {
        let server = Server::start(move |mut stream, _| {
            if request(&stream, ms(60_000)).is_some() {
                let _ = stream.write_all(reply);
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
        let tally = run(&SlowPlan { connections: 1, ..plan(&server) });
        let failure = tally.first_failure.unwrap_or_default();
        assert!(tally.served.is_empty() && failure.contains(expected), "{failure}");
    }
}

#[test]
fn bytes_are_sent_one_at_a_time() {
    for part in [SlowPart::Headers, SlowPart::Body] {
        bytes_sent(part);
    }
}

#[test]
fn a_stop_ends_the_run_at_once_with_the_results_so_far() {
    let server = closing(ms(60_000), b"");
    let stop = AtomicBool::new(false);
    let plan = SlowPlan { longest: ms(60_000), ..plan(&server) };
    let began = Instant::now();
    let tally = thread::scope(|scope| {
        let (plan, stop_it) = (&plan, &stop);
        let mut on_progress = |progress: &regatta_load::SlowProgress| {
            if progress.alive == 20 && progress.served > 0 {
                stop_it.store(true, SeqCst);
            }
        };
        scope.spawn(move || run_slow(plan, &mut on_progress, stop_it)).join().unwrap().unwrap()
    });
    assert!(tally.interrupted && tally.alive == 20 && began.elapsed() < ms(30_000));
}

#[test]
fn a_missing_server_is_reported_and_an_invalid_plan_refused() {
    let nobody = refusing();
    let server = closing(ms(60_000), b"");
    let tally = run(&SlowPlan { target: nobody.addr, ..plan(&server) });
    assert_eq!((tally.opened, tally.refused, tally.served.len()), (0, 20, 0));
    assert!(tally.failed > 0);
    let nothing = SlowPlan { connections: 0, ..plan(&server) };
    let error = run_slow(&nothing, &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("at least 1"), "{error}");
    let many = SlowPlan { connections: 50_000_000, ..plan(&server) };
    let error = run_slow(&many, &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("more descriptors"), "{error}");
}
