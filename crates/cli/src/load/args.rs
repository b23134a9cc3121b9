//! What `regatta load` is asked for.

use super::{adapter::AdapterArgs, http::HttpArgs, tls::TlsArgs, url};
use crate::values::{count, duration, limit, one_of, percent, rate, workload};
use regatta_load::{Arrivals, Drive};
use regatta_record::{Burst, Heads};
use regatta_script::{Workload, dialects::http::SlowPart};
use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

/// Load a server and check every reply: in closed loop, in open loop at a rate, or by a burst.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta load line://127.0.0.1:4000
  regatta load line://127.0.0.1:4000 -c 1000 -p 16 -d 10s --pid $(pidof my-server)
  regatta load line://127.0.0.1:4000 -n 5000 -c 500 -p 3 --json -
  regatta load line://127.0.0.1:4000 -c 10 --idle 10000
  regatta load line://127.0.0.1:4000 -c 45000 --processes 3
  regatta load line://127.0.0.1:4000 --rate 20k/s
  regatta load line://127.0.0.1:4000 --rate 20k/s --arrivals constant --cpus 1
  regatta load line://127.0.0.1:4000 --burst 10x500x10
  regatta load line://127.0.0.1:4000 --workload workloads/double.toml
  regatta load http://127.0.0.1:8080/index.html -c 100 -p 16
  regatta load http://127.0.0.1:8080/ --workload hello --churn -n 1000 -c 100
  regatta load http://127.0.0.1:8080/items -X POST --body '{\"n\": 1}' --expect-status 201 \\
      -H 'Content-Type: application/json' --expect-json /n=1 --expect-header Location
  regatta load http://127.0.0.1:8080 --workload workloads/http.toml
  regatta load http://127.0.0.1:8080/ --tolerate 1%
  regatta load https://localhost:8443/ --cacert my-roots.pem
  regatta load memcached://127.0.0.1:11211 -p 16
  regatta load redis://127.0.0.1:6379/2 -c 20 -p 100 --workload workloads/shard-mset-10.toml
  regatta load redis://127.0.0.1:6379 -c 20 -p 16 --verify
  regatta load ws://127.0.0.1:8080/ws -c 1000 --in-flight 4
  regatta load ws://127.0.0.1:8080/ws -c 1000 --in-flight 4 --passing 50
  regatta load ws://127.0.0.1:8080/ -c 1000 --in-flight 4 --adapter nats
  regatta load http://127.0.0.1:8080/ --slow headers -c 5000 -d 30s

With --rate requests are sent when they are due, whatever became of those before, and latency counts
from then: the wait for a free connection (the server's doing), the send lag (the load's), and the
service. Before a send the load spins for 50 µs if --cpus gives each of its threads a CPU, unless the
process of --pid may use one of these too; else it sleeps, and sends some 50 µs later.

What is not found: replies are not compared in the names and values of headers that nothing is
expected of, Date among them; the length that a reply to HEAD announces cannot be checked; and of
replies that are all alike, one that is sent too early looks like one that is prompt.

Exit status: 0 loaded and judged; 1 a reply was wrong or missing (with --tolerate, too many were), or
none came, or more than 1% of the
requests that a rate asked for were not sent, or timed out, or slow clients kept the server from
serving new ones, or not all of them came to stand; 2 wrong usage, or the server cannot be reached, or
does not keep connections open, or a load process failed; 130 after Ctrl-C.")]
pub struct LoadArgs {
    #[arg(help = format!("What to load: {}", url::forms()))]
    pub url: String,
    /// Connections open at a time
    #[arg(short, long, default_value = "64", value_name = "N")]
    pub connections: NonZeroUsize,
    /// Length of the measured window
    #[arg(short, long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub duration: Duration,
    /// Send exactly so many requests instead, without a warm-up; over ws:// after all members have joined
    #[arg(short = 'n', long, value_parser = count, value_name = "N", conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Requests outstanding on each connection, at most; 1 if absent, 3 with --burst
    #[arg(short, long, value_name = "N")]
    pub pipeline: Option<NonZeroUsize>,
    /// Requests per second in all, scheduled ahead (open loop), such as 20k/s; as fast as the replies
    /// come if absent
    #[arg(short, long, value_parser = rate, value_name = "R", conflicts_with_all = ["requests", "churn"])]
    pub rate: Option<NonZeroU32>,
    /// Requests under way over all connections, at most; the connections take turns. With ws:// broadcasts:
    /// the load of hubs, 4 in the article
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "churn", "pipeline", "burst", "slow"])]
    pub in_flight: Option<NonZeroU32>,
    /// How the requests of --rate arrive: poisson (as from many users) or constant (evenly spaced)
    #[arg(long, default_value = "poisson", requires = "rate",
          value_parser = |text: &str| one_of(text, &Arrivals::ALL, Arrivals::name))]
    pub arrivals: Arrivals,
    /// Further connections that send one request when they open and are silent from then on
    #[arg(long, default_value = "0", value_name = "N", conflicts_with_all = ["requests", "churn"])]
    pub idle: usize,
    /// So many of the --idle connections read nothing after that: slow members of a hub
    #[arg(long, default_value = "0", value_name = "N", requires = "idle")]
    pub stalled: usize,
    /// Further members that come and go the whole time, about N of them per second: each stays for up to
    /// 2 s, then leaves by a Close frame or a reset, and another comes. A broadcast that is sent while it
    /// is a member must reach it once, as everybody. For hubs: --churn is a connection for every
    /// request there, an echo, and no broadcast
    #[arg(long, default_value = "0", value_name = "N", conflicts_with_all = ["requests", "churn", "burst", "slow"])]
    pub passing: usize,
    /// So many load instances at once, each with so many connections, each of which connects, sends
    /// so many requests and closes; tells how long each instance took
    #[arg(long, value_parser = shape_of_burst, value_name = "INSTANCESxCONNECTIONSxREQUESTS",
          conflicts_with_all = ["connections", "requests", "duration", "churn", "rate", "idle"])]
    pub burst: Option<Shape>,
    /// Load threads, over all processes; each process has equally many, and at least one
    #[arg(short, long, default_value = "1", value_name = "N")]
    pub threads: NonZeroUsize,
    /// Load processes, at most 64; more are started if this many may not open enough files
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub processes: usize,
    /// How long a reply may take
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub timeout: Duration,
    /// Warm-up, exactly; if absent until the rate is steady, at most a second
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub warm_up: Option<Duration>,
    /// Warm up until the CPU per request of --pid is steady instead, at most so long, and say how long
    /// that took and what a request cost at first
    #[arg(long, value_parser = duration, value_name = "TIME", requires = "pid",
          conflicts_with_all = ["warm_up", "requests", "burst"])]
    pub settle: Option<Duration>,
    /// A new connection for every request, or for every conversation where a workload file has steps
    #[arg(long, conflicts_with = "pipeline")]
    pub churn: bool,
    /// What to send, and what must come back: to line:// double (if absent), dialogue, echo (for a
    /// server that sends back what it gets), or a workload file of your own; to http:// a GET of the
    /// path, or what the flags below say (if absent), hello, hash, or a workload file; to memcached://
    /// cache (if absent), or a workload file; to redis:// shard (some of every command; if absent), or
    /// a workload file; to ws:// hub (broadcasts; if absent) or hub-echo
    #[arg(long, value_parser = workload, value_name = "NAME|FILE.toml")]
    pub workload: Option<Workload>,
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// All connections share their keys, and when the load has ended, the replies of all of them must
    /// have an explanation: a history checker decides for each key whether one order of all operations
    /// gives these replies (linearizability). For redis://; without it each connection has its own keys,
    /// and its replies are checked as they come. The first 4 million operations on keys are checked, and
    /// the result says how many came after them. In one load process
    #[arg(long, conflicts_with = "slow")]
    pub verify: bool,
    /// The heads of the requests of hello and hash: varied as users' are (if absent), or identical
    #[arg(long, value_name = "varied|identical", requires = "workload")]
    pub heads: Option<Heads>,
    /// Also measure the process PID and all below it
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Pin the load threads to these CPUs
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    /// Never sleep inside the window: waking the load is charged to a server on the same machine.
    /// Only where no server runs on the load's CPUs, and each load thread has one
    #[arg(long)]
    pub busy_poll: bool,
    /// Go on after replies that are wrong or missing, and count them: the load succeeds unless more
    /// than this share of all requests fails. Without it, the first wrong reply ends the load
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    pub tolerate: Option<f64>,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub slow: SlowArgs,
    /// Seed of the requests, and of their moments
    #[arg(long, default_value = "1", value_name = "S")]
    pub seed: u64,
    /// Write the result as JSON; - for stdout instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub http: HttpArgs,
}

/// What is asked of slow clients.
#[derive(Clone, Debug, clap::Args)]
pub struct SlowArgs {
    /// Slow clients instead: each of the connections sends a byte of its request at a time and never
    /// ends it, in the headers or in the body; new clients beside them want to be served
    #[arg(long, value_name = "headers|body",
          value_parser = |text: &str| one_of(text, &SlowPart::ALL, SlowPart::name),
          conflicts_with_all = ["requests", "pipeline", "rate", "idle", "burst", "threads", "processes", "warm_up",
                                "churn", "workload", "pid", "cpus", "busy_poll", "seed", "HttpArgs"])]
    pub slow: Option<SlowPart>,
    /// Between two bytes of a slow connection
    #[arg(long, default_value = "1s", value_parser = limit, value_name = "TIME", requires = "slow")]
    pub every: Duration,
    /// How soon new clients are to be served beside the slow ones
    #[arg(long, default_value = "100ms", value_parser = limit, value_name = "TIME",
          requires = "slow")]
    pub within: Duration,
}

/// A burst as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub burst: Burst,
    /// Of each instance.
    pub connections: u32,
}

impl LoadArgs {
    /// All that are open at a time, idle ones left out.
    pub fn connections(&self) -> usize {
        let in_burst = |shape: Shape| shape.burst.instances as usize * shape.connections as usize;
        self.burst.map_or(self.connections.get(), in_burst)
    }

    /// When requests are sent. The flags that exclude each other are refused before.
    pub fn drive(&self) -> Drive {
        match (self.burst, self.rate) {
            (Some(shape), _) => Drive::Burst(shape.burst),
            (None, Some(rate)) => Drive::Open { rate, arrivals: self.arrivals },
            (None, None) if self.churn => Drive::Churn,
            (None, None) => match self.in_flight {
                Some(in_flight) => Drive::Bounded { in_flight },
                None => Drive::Closed,
            },
        }
    }

    /// Requests outstanding on each connection, at most.
    pub fn pipeline(&self) -> usize {
        let absent = if self.burst.is_some() { 3 } else { 1 };
        self.pipeline.map_or(absent, NonZeroUsize::get)
    }
}

/// `10x500x10`: instances, connections of each, requests of each connection.
fn shape_of_burst(text: &str) -> Result<Shape, String> {
    let numbers: Option<Vec<u32>> =
        text.split('x').map(|number| number.parse().ok().filter(|n| *n > 0)).collect();
    match numbers.as_deref() {
        Some(&[instances, connections, requests]) => {
            Ok(Shape { burst: Burst { instances, requests }, connections })
        }
        _ => Err("expected instances x connections of each x requests of each connection, as \
                  10x500x10"
            .into()),
    }
}
