//! Idle connections: each sends one request when it opens, and stays open and silent.

use crate::common::{Called, Server, answer_lines, assert_undisturbed, double, plan, run};
use regatta_load::{Drive, Error, LoadObserver, Moment, Plan, Until};
use regatta_testkit::deadline::until;
use std::{
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

/// Records the number of open connections at both edges.
struct OpenConnections {
    now: Arc<AtomicUsize>,
    seen: Vec<usize>,
}

impl LoadObserver for OpenConnections {
    fn at(&mut self, moment: Moment) {
        if [Moment::WindowOpens, Moment::WindowCloses, Moment::ConnectionsOpen].contains(&moment) {
            self.seen.push(self.now.load(SeqCst));
        }
    }
}

#[test]
fn idle_connections_send_one_request_each_and_stay_open() {
    for (threads, pipeline) in [(1, 1), (2, 16)] {
        let per_connection = Arc::new(Mutex::new(Vec::new()));
        let now = Arc::new(AtomicUsize::new(0));
        let (seen, open) = (per_connection.clone(), now.clone());
        let mut server = Server::start(move |stream, requests| {
            let asked = AtomicU64::new(0);
            open.fetch_add(1, SeqCst);
            answer_lines(stream, requests, |_, line| {
                asked.fetch_add(1, SeqCst);
                Some(double(line))
            });
            open.fetch_sub(1, SeqCst);
            seen.lock().unwrap().push(asked.into_inner());
        });
        let plan = Plan { connections: 5, idle: 90, threads, pipeline, ..plan(server.address) };
        let mut edges = OpenConnections { now, seen: vec![] };
        let stop = AtomicBool::new(false);
        let tally = regatta_load::run(&plan, &mut edges, &mut |_| {}, &stop).unwrap();
        server.die();
        assert_undisturbed(&tally);
        assert_eq!(tally.connections_opened, 95);
        assert_eq!(edges.seen, [95, 95, 95]);
        let seen = per_connection.lock().unwrap();
        assert_eq!(seen.iter().filter(|&&asked| asked == 1).count(), 90);
        assert!(tally.requests > 5 * 2, "the active connections send requests");
    }
}

/// Closes some idle connections on the server when the window opens.
struct CloseSome {
    streams: Arc<Mutex<Vec<std::net::TcpStream>>>,
    called: Called,
}

impl LoadObserver for CloseSome {
    fn at(&mut self, moment: Moment) {
        if moment == Moment::WindowOpens {
            // The connections that were opened last are idle ones.
            for stream in self.streams.lock().unwrap().iter().rev().take(3) {
                stream.shutdown(Shutdown::Both).unwrap();
            }
        }
        self.called.at(moment);
    }
}

#[test]
fn an_idle_connection_that_the_server_closes_is_counted_and_reopened() {
    let streams: Arc<Mutex<Vec<std::net::TcpStream>>> = Arc::default();
    let kept = streams.clone();
    let server = Server::start(move |stream, requests| {
        kept.lock().unwrap().push(stream.try_clone().unwrap());
        answer_lines(stream, requests, |_, line| Some(double(line)));
    });
    // More connections than may open at a time, so that the last three are idle ones.
    let plan = Plan { connections: 1, idle: 200, ..plan(server.address) };
    let mut edges = CloseSome { streams, called: Called::default() };
    let stop = AtomicBool::new(false);
    let tally = regatta_load::run(&plan, &mut edges, &mut |_| {}, &stop).unwrap();
    assert_eq!((tally.errors.closed_idle, tally.errors.total()), (3, 3));
    assert_eq!(tally.connections_opened, 204);
    assert_eq!(edges.called.names(), ["opens", "closes", "open"]);
}

/// Closes the idle connection when the window opens. The server answers the active one when the window is over.
struct CloseIdle {
    idle: Arc<Mutex<Option<TcpStream>>>,
    is_over: Arc<AtomicBool>,
}

impl LoadObserver for CloseIdle {
    fn at(&mut self, moment: Moment) {
        match moment {
            Moment::WindowOpens => {
                let idle = self.idle.lock().unwrap().take().unwrap();
                idle.shutdown(Shutdown::Both).unwrap();
            }
            Moment::WindowCloses => self.is_over.store(true, SeqCst),
            _ => {}
        }
    }
}

#[test]
fn the_reply_to_an_idle_connection_that_is_reopened_in_the_window_is_not_counted() {
    let idle: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let (kept, answers) = (idle.clone(), is_over.clone());
    let server = Server::numbered(move |number, stream, requests| {
        if number == 1 {
            *kept.lock().unwrap() = Some(stream.try_clone().unwrap());
        }
        answer_lines(stream, requests, |i, line| {
            if (number, i) == (0, 1) {
                until("the window is over", || answers.load(SeqCst));
            }
            Some(double(line))
        });
    });
    let window = Until::Elapsed(Duration::from_secs(1));
    let plan = Plan { connections: 1, idle: 1, until: window, ..plan(server.address) };
    let mut edges = CloseIdle { idle, is_over };
    let stop = AtomicBool::new(false);
    let tally = regatta_load::run(&plan, &mut edges, &mut |_| {}, &stop).unwrap();
    assert_eq!((tally.errors.closed_idle, tally.errors.total()), (1, 1), "{:?}", tally.errors);
    assert_eq!((tally.connections_opened, tally.requests), (3, 0));
}

#[test]
fn idle_connections_count_towards_the_limits_and_need_a_duration() {
    let server = Server::double();
    let plan = plan(server.address);
    match run(&Plan { idle: 50_000_000, ..plan.clone() }).unwrap_err() {
        Error::Descriptors { wanted: 50_000_001, .. } => {}
        error => panic!("{error}"),
    }
    for refused in [
        Plan { idle: 1, drive: Drive::Churn, ..plan.clone() },
        Plan { idle: 1, until: Until::Requests(10), ..plan.clone() },
        Plan { idle: Plan::MAX_OUTSTANDING, ..plan.clone() },
    ] {
        assert!(matches!(run(&refused), Err(Error::Plan(_))), "{refused:?}");
    }
    assert_eq!(server.requests(), 0);
}
