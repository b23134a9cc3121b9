//! How slices and lanes end early, and what servers do to connections at rest.

use super::{NEVER, SHORT, drive, end, open};
use crate::common::{Server, answer_lines, at, bounded, double, plan};
use regatta_load::{Arrivals, Compiled, Drive, Error, Lane, Over, Plan, SliceCounts, SliceKind};
use regatta_script::Workload;
use regatta_testkit::client::refusing;
use std::{
    io::{BufRead, BufReader, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

#[test]
fn a_wrong_reply_ends_the_lane_and_later_calls_say_so() {
    let wrong = std::sync::Arc::new(AtomicBool::new(false));
    let server = Server::lines({
        let wrong = wrong.clone();
        move |_, line| match wrong.load(SeqCst) {
            true => Some("5\n".into()),
            false => Some(double(line)),
        }
    });
    let plan = Plan { connections: 3, threads: 2, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    for i in 0..2 {
        assert_eq!(lane.slice(SHORT, SliceKind::Counted, i).is_over, None);
    }
    wrong.store(true, SeqCst);
    for i in 2..4 {
        let over = lane.slice(SHORT, SliceKind::Counted, i).is_over;
        assert!(matches!(over, Some(Over::WrongReply(ref one)) if one.received.contains('5')));
    }
    let tally = lane.end().unwrap();
    assert!(tally.errors.wrong_reply >= 1);
    assert!(tally.first_wrong.is_some() && tally.slices.len() == 3);
}

#[test]
fn a_server_that_dies_is_noticed() {
    for while_driven in [false, true] {
        let mut server = Server::double();
        let plan = Plan { connections: 3, threads: 2, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        lane.slice(SHORT, SliceKind::Counted, 0);
        let mut slices = Vec::new();
        if while_driven {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    slices.push(lane.slice(Duration::from_secs(1), SliceKind::Counted, 1))
                });
                server.die();
            });
        } else {
            server.die();
        }
        while slices.last().is_none_or(|last: &SliceCounts| last.is_over.is_none()) {
            assert!(slices.len() < 100);
            slices.push(lane.slice(SHORT, SliceKind::Counted, 2));
        }
        assert_eq!(slices.last().unwrap().is_over, Some(Over::ServerDied));
        let tally = lane.end().unwrap();
        assert!(tally.server_died && tally.errors.connect > 0, "{:?}", tally.errors);
    }
}

/// A server of `double` whose streams the test keeps.
fn kept() -> (Server, Arc<Mutex<Vec<TcpStream>>>) {
    let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let kept = streams.clone();
    let server = Server::start(move |stream, requests| {
        kept.lock().unwrap().push(stream.try_clone().unwrap());
        answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    (server, streams)
}

#[test]
fn connections_that_the_server_closes_at_rest_are_reopened_and_no_error() {
    for (drive_, threads) in
        [(Drive::Closed, 1), (Drive::Closed, 2), (bounded(3), 1), (at(3_000, Arrivals::Poisson), 2)]
    {
        let (server, streams) = kept();
        let plan = Plan { connections: 4, idle: 1, threads, drive: drive_, ..plan(server.address) };
        let mut lane = open(&plan).unwrap();
        let opening = server.requests();
        let mut sum = drive(&mut lane).requests;
        for stream in streams.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).unwrap();
        }
        let slice = drive(&mut lane);
        assert!(slice.requests > 0);
        sum += slice.requests + drive(&mut lane).requests;
        let tally = end(lane);
        assert_eq!(tally.requests, sum);
        assert!(tally.connections_opened > 5, "{drive_:?}");
        // The idle connection sends its first request again.
        assert_eq!(server.requests(), opening + sum + 1, "{drive_:?}");
    }
}

#[test]
fn surplus_bytes_are_wrong_whenever_they_come() {
    for next in ["slice", "end"] {
        let (server, streams) = kept();
        let mut lane = open(&Plan { connections: 2, ..plan(server.address) }).unwrap();
        drive(&mut lane);
        streams.lock().unwrap()[1].write_all(b"8\n").unwrap();
        if next == "slice" {
            let slice = lane.slice(SHORT, SliceKind::Counted, 1);
            assert!(matches!(slice.is_over, Some(Over::WrongReply(_))), "{slice:?}");
        }
        let wrong = lane.end().unwrap().first_wrong.expect("the bytes are found");
        assert!(wrong.received.contains('8'), "{wrong:?}");
    }
}

/// A server may close a connection that was idle for a second, although a request is on its way.
#[test]
fn a_request_that_meets_the_close_of_an_idle_connection_is_sent_again() {
    // The numbers of the connections that are closed, and how many more requests each answers.
    let closes = Arc::new(Mutex::new((0..0, 0)));
    let server = Server::numbered({
        let closes = closes.clone();
        move |number, stream, requests| {
            let answered = AtomicU64::new(0);
            answer_lines(stream, requests, |_, line| {
                let (numbers, after) = closes.lock().unwrap().clone();
                let is_open = !numbers.contains(&number) || answered.fetch_add(1, SeqCst) < after;
                is_open.then(|| double(line))
            });
        }
    });
    let plan = Plan { connections: 3, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    drive(&mut lane);
    thread::sleep(Duration::from_millis(1_100));
    *closes.lock().unwrap() = (0..3, 0);
    // Those that cannot be reopened in the first slice are reopened in the second.
    let opened = drive(&mut lane).connections_opened + drive(&mut lane).connections_opened;
    assert_eq!(opened, 3);
    // After a reply it is an error.
    *closes.lock().unwrap() = (3..6, 1);
    let slices = (0..100).map(|i| lane.slice(SHORT, SliceKind::Counted, i));
    let mut errors = slices.scan(0, |sum, slice| {
        *sum += slice.errors.closed_early;
        Some(*sum)
    });
    assert!(errors.any(|sum| sum == 3));
    lane.end().unwrap();
}

/// A part of a reply shows that the server did not close an idle connection.
#[test]
fn a_close_in_the_middle_of_the_first_reply_after_a_rest_is_an_error() {
    let cuts = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let cuts = cuts.clone();
        move |stream, _: &AtomicU64| {
            for _ in BufReader::new(&stream).lines().map_while(Result::ok) {
                let is_cut = cuts.swap(false, SeqCst);
                let reply = if is_cut { "VALUE a 0 9\r\nb" } else { "END\r\n" };
                if (&stream).write_all(reply.as_bytes()).is_err() || is_cut {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
            }
        }
    });
    let text = "protocol = 'memcached'\n[[request]]\nget = 'a'";
    let workload = Workload::from_text(text, "any").unwrap();
    let mut lane = open(&Plan { workload, ..plan(server.address) }).unwrap();
    drive(&mut lane);
    // A rest counts as long after a second.
    thread::sleep(Duration::from_millis(1_100));
    cuts.store(true, SeqCst);
    assert_eq!(lane.slice(SHORT, SliceKind::Counted, 1).errors.closed_early, 1);
    let part = lane.end().unwrap().first_unfinished.clone().unwrap();
    assert!(part.received.starts_with("part of a value"), "{part:?}");
}

#[test]
fn a_server_that_answers_nothing_counts_as_dead() {
    let silent = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let silent = silent.clone();
        move |stream, requests: &AtomicU64| {
            answer_lines(stream, requests, |_, line| {
                while silent.load(SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                }
                Some(double(line))
            });
        }
    });
    let (timeout, patience) = (Duration::from_millis(200), Duration::from_millis(500));
    let plan = Plan { connections: 2, threads: 2, timeout, patience, ..plan(server.address) };
    let mut lane = open(&plan).unwrap();
    drive(&mut lane);
    silent.store(true, SeqCst);
    let over = (0..100).find_map(|i| lane.slice(SHORT, SliceKind::Counted, i).is_over);
    silent.store(false, SeqCst);
    assert_eq!(over, Some(Over::ServerDied));
    let tally = lane.end().unwrap();
    assert!(tally.server_died && tally.errors.timeout > 0, "{:?}", tally.errors);
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let nobody = refusing();
    let plan = Plan { patience: Duration::from_millis(300), ..plan(nobody.addr) };
    assert!(matches!(open(&plan), Err(Error::NotOpened { opened: 0, wanted: 1, .. })));
    let mut churn = open(&Plan { drive: Drive::Churn, ..plan.clone() }).unwrap();
    assert_eq!(churn.slice(SHORT, SliceKind::Counted, 1).is_over, Some(Over::ServerDied));
    assert!(matches!(churn.end(), Err(Error::NotOpened { .. })));
    let compiled = Compiled::of(&Plan { seed: 7, ..plan.clone() }).unwrap();
    assert!(matches!(Lane::open(&plan, &compiled, &NEVER), Err(Error::Plan(_))));
}
