//! Small servers for the tests: blocking, one thread per connection. Each test defines only what is
//! special about its server.
#![allow(dead_code, reason = "every test file uses another part")]

pub mod slow;
pub mod tls;

use regatta_load::{
    Arrivals, Burst, Drive, Error, LoadObserver, Moment, Plan, Progress, Tally, Until, WarmUp,
};
use regatta_script::{
    Workload,
    dialects::http::{HttpAsks, HttpRequest, HttpWorkload},
};
use regatta_testkit::{child::Killed, client::until_listens, port, prerequisite::find, server};
use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    num::NonZeroU32,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// A server on its own port. Dropping it closes the port and all connections.
pub struct Server {
    pub address: SocketAddr,
    /// Requests that were read, if the server counts them.
    pub requests: Arc<AtomicU64>,
    /// Connections that were accepted.
    pub accepted: Arc<AtomicUsize>,
    server: server::Server,
}

impl Server {
    /// Starts a server that calls `serve` with each connection and the counter of requests. Connections stay open when
    /// it returns.
    pub fn start(serve: impl Fn(TcpStream, &AtomicU64) + Send + Sync + 'static) -> Server {
        Server::on(listener(), serve)
    }

    pub fn on(
        listener: TcpListener,
        serve: impl Fn(TcpStream, &AtomicU64) + Send + Sync + 'static,
    ) -> Server {
        Server::serving(listener, move |_, stream, requests| serve(stream, requests))
    }

    /// Also passes the number of the connection to `serve`, counted from 0 in the order of acceptance.
    pub fn numbered(
        serve: impl Fn(usize, TcpStream, &AtomicU64) + Send + Sync + 'static,
    ) -> Server {
        Server::serving(listener(), serve)
    }

    fn serving(
        listener: TcpListener,
        serve: impl Fn(usize, TcpStream, &AtomicU64) + Send + Sync + 'static,
    ) -> Server {
        let (requests, open) = (Arc::<AtomicU64>::default(), Mutex::new(Vec::new()));
        let counted = requests.clone();
        let server = server::Server::on(listener, move |number, stream| {
            open.lock().unwrap().push(stream.try_clone().unwrap());
            serve(number, stream, &counted);
        });
        Server { address: server.addr, requests, accepted: server.accepted.clone(), server }
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
        self.server.stop();
    }
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
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

/// Starts nginx with one server, in a folder, whose files it serves. It announces the close of every connection after
/// 100 requests. `listen` and `server` are parts of its configuration.
pub fn nginx(folder: &Path, listen: &str, server: &str) -> (Killed, SocketAddr) {
    let (port, at) = (port::free(), folder.display());
    let conf = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error;
         events {{ worker_connections 512; }}
         http {{
             access_log off; client_body_temp_path {at}/a; proxy_temp_path {at}/b;
             fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;
             keepalive_requests 100;
             server {{ listen 127.0.0.1:{port} {listen}; root {at}; {server} }}
         }}"
    );
    fs::write(folder.join("nginx.conf"), conf).unwrap();
    let mut nginx = Command::new(find("nginx").expect("nginx is installed"));
    nginx.arg("-c").arg(folder.join("nginx.conf")).arg("-p").arg(folder).stderr(Stdio::null());
    let (nginx, address) = (Killed::start(&mut nginx), ([127, 0, 0, 1], port).into());
    until_listens(address);
    (nginx, address)
}

/// A program for node, which prints the port on which it listens.
pub fn node(program: &str, arguments: &[&OsStr]) -> (Killed, SocketAddr) {
    let mut node = Command::new("node");
    node.args(["-e", program, "--"]).args(arguments).stdout(Stdio::piped());
    let (mut node, mut port) = (Killed::start(&mut node), String::new());
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (node, ([127, 0, 0, 1], port.trim().parse().unwrap()).into())
}

/// A workload file of the repository.
pub fn bundled(name: &str) -> Workload {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
    Workload::read(&folder.join(name)).unwrap()
}

/// Runs a cache's workload with every kind of load, without errors.
pub fn in_every_shape(workload: Workload, target: SocketAddr) {
    let until = Until::Elapsed(Duration::from_millis(100));
    let plan = Plan { workload, connections: 4, until, ..plan(target) };
    for plan in [
        plan.clone(),
        Plan { pipeline: 32, ..plan.clone() },
        Plan { drive: Drive::Churn, ..plan.clone() },
        Plan { drive: at(5_000, Arrivals::Poisson), ..plan.clone() },
        Plan { drive: bounded(2), idle: 3, ..plan.clone() },
        in_burst(2, 50, Plan { pipeline: 3, ..plan.clone() }),
        Plan { until: Until::Requests(2_000), threads: 2, ..plan.clone() },
    ] {
        assert_undisturbed(&run(&plan).unwrap());
    }
}

/// Checks that a stop ends loads of every kind so soon, up to the end of the window.
pub fn assert_stops_within(limit: Duration) {
    let silent = Server::lines(|_, _| Some(String::new()));
    let right = Server::double();
    let long = Duration::from_secs(20);
    let until = Until::Elapsed(long);
    let plans = [
        Plan { connections: 2, until, ..plan(silent.address) },
        Plan { threads: 2, connections: 4, until, ..plan(right.address) },
        Plan { warm_up: WarmUp::Fixed(long), until, ..plan(right.address) },
        Plan { drive: Drive::Churn, until, ..plan(right.address) },
        Plan { until: Until::Requests(u64::MAX), ..plan(right.address) },
    ];
    for plan in plans {
        let (stop, mut stopped) = (AtomicBool::new(false), None);
        let mut stop_later = |progress: &Progress| {
            if progress.elapsed > Duration::from_millis(250) {
                stopped.get_or_insert_with(Instant::now);
                stop.store(true, SeqCst);
            }
        };
        let tally =
            regatta_load::run(&plan, &mut Called::default(), &mut stop_later, &stop).unwrap();
        let took = stopped.unwrap().elapsed();
        assert!(took < limit, "{took:?} after the stop: {plan:?}");
        assert!(tally.interrupted);
        assert!(tally.histogram.len() <= tally.replies);
    }
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
