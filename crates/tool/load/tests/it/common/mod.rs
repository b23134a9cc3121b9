//! Small servers for the tests: blocking, one thread per connection. Each test defines only what is
//! special about its server.
#![allow(dead_code, reason = "every test file uses another part")]

pub mod slow;
pub mod tls;

use regatta_load::{Arrivals, Burst, Drive, Error, LoadObserver, Moment, Plan, Tally, Until};
use regatta_script::{
    Workload,
    dialects::http::{HttpAsks, HttpRequest, HttpWorkload},
};
use regatta_testkit::prerequisite::find;
use std::{
    io::{BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    num::NonZeroU32,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A server on its own port. Dropping it closes the port and all connections.
pub struct Server {
    pub address: SocketAddr,
    /// Requests that were read, if the server counts them.
    pub requests: Arc<AtomicU64>,
    /// Connections that were accepted.
    pub accepted: Arc<AtomicUsize>,
    closing: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that calls `serve` with each connection and the counter of requests.
    pub fn start(serve: impl Fn(TcpStream, &AtomicU64) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::on(listener, serve)
    }

    pub fn on(
        listener: TcpListener,
        serve: impl Fn(TcpStream, &AtomicU64) + Send + Sync + 'static,
    ) -> Server {
        Self::numbered(listener, move |_, stream, requests| serve(stream, requests))
    }

    /// Also passes the number of the connection to `serve`, counted from 0 in the order of acceptance.
    pub fn numbered(
        listener: TcpListener,
        serve: impl Fn(usize, TcpStream, &AtomicU64) + Send + Sync + 'static,
    ) -> Server {
        let address = listener.local_addr().unwrap();
        let (requests, accepted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let closing = Arc::new(AtomicBool::new(false));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let serve = Arc::new(serve);
        let acceptor = thread::spawn({
            let (requests, accepted) = (requests.clone(), accepted.clone());
            let (closing, streams) = (closing.clone(), streams.clone());
            move || {
                let mut serving = Vec::new();
                loop {
                    let (stream, _) = listener.accept().unwrap();
                    if closing.load(SeqCst) {
                        break;
                    }
                    stream.set_nodelay(true).unwrap();
                    streams.lock().unwrap().push(stream.try_clone().unwrap());
                    let number = accepted.fetch_add(1, SeqCst);
                    let (serve, requests) = (serve.clone(), requests.clone());
                    serving.push(thread::spawn(move || serve(number, stream, &requests)));
                }
                drop(listener);
                serving.into_iter().for_each(|one| one.join().unwrap());
            }
        });
        Server { address, requests, accepted, closing, streams, acceptor: Some(acceptor) }
    }

    /// A server that answers each line with `answer(line number on its connection, line)`. On `None` it
    /// closes the connection.
    pub fn lines(answer: impl Fn(u64, &str) -> Option<String> + Send + Sync + 'static) -> Server {
        Server::start(move |stream, requests| {
            answer_lines(stream, requests, &answer);
        })
    }

    /// A correct server for `double`.
    pub fn double() -> Server {
        Server::lines(|_, line| Some(double(line)))
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(SeqCst)
    }

    /// Closes the port and every connection.
    pub fn die(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.closing.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        acceptor.join().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.die();
    }
}

/// Reads lines and answers all that are buffered with one write.
pub fn answer_lines(
    stream: TcpStream,
    requests: &AtomicU64,
    answer: impl Fn(u64, &str) -> Option<String>,
) {
    let mut reader = BufReader::with_capacity(1 << 16, stream.try_clone().unwrap());
    let (mut line, mut replies) = (String::new(), String::new());
    for i in 0.. {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(n) if n > 0 && line.ends_with('\n') => {}
            _ => return,
        }
        requests.fetch_add(1, SeqCst);
        let reply = answer(i, line.trim_end());
        let closes = reply.is_none();
        replies.push_str(&reply.unwrap_or_default());
        if closes || !reader.buffer().contains(&b'\n') {
            if (&stream).write_all(replies.as_bytes()).is_err() {
                return;
            }
            replies.clear();
        }
        if closes {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// The correct reply.
pub fn double(line: &str) -> String {
    format!("{}\n", line.parse::<i128>().unwrap() * 2)
}

/// One connection, one request at a time, a window of 300 ms, no warm-up.
pub fn plan(target: SocketAddr) -> Plan {
    Plan {
        until: Until::Elapsed(Duration::from_millis(300)),
        seed: 42,
        ..Plan::closed(target, workload("double"))
    }
}

/// An open loop of `rate` requests per second.
pub fn at(rate: u32, arrivals: Arrivals) -> Drive {
    Drive::Open { rate: NonZeroU32::new(rate).unwrap(), arrivals }
}

/// A closed loop with at most `in_flight` requests in flight over all connections.
pub fn bounded(in_flight: u32) -> Drive {
    Drive::Bounded { in_flight: NonZeroU32::new(in_flight).unwrap() }
}

/// The same plan as a burst.
pub fn in_burst(instances: u32, requests: u32, plan: Plan) -> Plan {
    Plan { drive: Drive::Burst(Burst { instances, requests }), until: Until::Done, ..plan }
}

/// A built-in workload.
pub fn workload(name: &str) -> Workload {
    Workload::parse(name).unwrap()
}

/// One HTTP request and its reply.
pub fn asks(request: HttpRequest) -> Workload {
    HttpAsks::from(HttpWorkload::new("one", vec![request]).unwrap()).into()
}

/// Which of the required callbacks were called, in order, and when.
#[derive(Default)]
pub struct Called(pub Vec<(&'static str, Instant)>);

impl LoadObserver for Called {
    fn at(&mut self, moment: Moment) {
        let name = match moment {
            Moment::WindowOpens => "opens",
            Moment::WindowCloses => "closes",
            Moment::ConnectionsOpen => "open",
            _ => return,
        };
        self.0.push((name, Instant::now()));
    }
}

impl Called {
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

/// Runs a plan, and checks that it takes no longer than 30 s.
pub fn run(plan: &Plan) -> Result<Tally, Error> {
    let began = Instant::now();
    let result =
        regatta_load::run(plan, &mut Called::default(), &mut |_| {}, &AtomicBool::new(false));
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    result
}

/// nginx.
pub fn nginx() -> Command {
    Command::new(find("nginx").expect("nginx is installed"))
}

/// Checks what must hold for every run without errors.
pub fn assert_undisturbed(tally: &Tally) {
    assert_eq!(tally.errors.total(), 0, "{:?} {:?}", tally.errors, tally.first_wrong);
    assert_eq!(tally.first_wrong, None);
    assert!(!tally.interrupted && !tally.server_died);
    assert!(tally.requests > 0);
    assert!(!tally.histogram.is_empty() && tally.histogram.len() <= tally.replies);
    assert!(tally.load_cpu_ns > 0 && tally.window_ns > 0);
}
