//! The options of `regatta load`.

use super::{
    on::OnArgs,
    seconds::{SeriesFile, series_file},
    target::{
        adapter::AdapterArgs, connect::ConnectArgs, grpc::GrpcArgs, http::HttpArgs, tls::TlsArgs,
        url,
    },
    threshold::{Threshold, threshold},
};
use crate::options::values::{
    connections, count, duration, limit, one_of, percent, rate, stage, workload,
};
use regatta_load::{Arrivals, Drive, Stage};
use regatta_record::{Burst, Heads};
use regatta_script::{Workload, dialects::http::SlowPart};
use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

/// Load a server and check every reply: in a closed loop, in an open loop at a rate, or in a burst.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta load line://127.0.0.1:4000
  regatta load line://127.0.0.1:4000 -c 1000 -p 16 --pid $(pidof my-server)
  regatta load line://127.0.0.1:4000 -n 5000 -c 500 -p 3 --json -
  regatta load line://127.0.0.1:4000 -c 10 --idle 10000
  regatta load line://127.0.0.1:4000 -c 45000 --processes 3
  regatta load line://127.0.0.1:4000 --rate 20k/s
  regatta load line://127.0.0.1:4000 --rate 20k/s --arrivals constant --cpus 1
  regatta load line://127.0.0.1:4000 --stages 10s:1k/s,30s:5k/s
  regatta load line://127.0.0.1:4000 --burst 10x500x10
  regatta load line://127.0.0.1:4000 --workload workloads/double.toml
  regatta load http://127.0.0.1:8080/index.html -c 100 -p 16
  regatta load http://127.0.0.1:8080/ --workload hello --churn -n 1000 -c 100
  regatta load http://127.0.0.1:8080/items -X POST --body '{\"n\": 1}' \\
      -H 'Content-Type: application/json' --expect-status 201 \\
      --expect-json /n=1 --expect-header Location
  regatta load http://127.0.0.1:8080 --workload workloads/http.toml
  regatta load http://localhost/items --unix-socket /run/app.sock
  regatta load http://127.0.0.1:8080/ --http2 -c 8 -p 32
  regatta load grpc://127.0.0.1:50051/helloworld.Greeter/SayHello \\
      --proto peers/helloworld.proto -c 8 -p 32 \\
      --message '{\"name\": \"a\"}' --expect '{\"message\": \"Hello a\"}'
  regatta load grpc://127.0.0.1:50051/shop.Prices/Watch -p 32 \\
      --stream --messages 100 --proto shop.proto --expect '{\"number\": {n-1}}' \\
      --fail-if 'first-p99>10ms' --fail-if 'gap-p99>1s'
  regatta load http://127.0.0.1:8080/ --tolerate 1%
  regatta load http://127.0.0.1:8080/ --rate 1k/s \\
      --fail-if 'p99>10ms' --fail-if 'errors>0.1%'
  regatta load https://localhost:8443/ --cacert my-roots.pem
  regatta load memcached://127.0.0.1:11211 -p 16
  regatta load redis://127.0.0.1:6379/2 -c 20 -p 100 \\
      --workload workloads/shard-mset-10.toml
  regatta load redis://127.0.0.1:6379 -c 20 -p 16 --verify
  regatta load ws://127.0.0.1:8080/ws -c 1000 --in-flight 4
  regatta load ws://127.0.0.1:8080/ws -c 1000 --in-flight 4 --passing 50
  regatta load ws://127.0.0.1:8080/ -c 1000 --in-flight 4 --adapter nats
  regatta load ws://10.0.0.5:8080/ws ws://10.0.0.6:8080/ws --one-order
  regatta load http://127.0.0.1:8080/ --slow headers -c 5000 -d 30s
  regatta load http://10.0.0.5:8080/ -c 4000 --on gen1,gen2 --deploy
  regatta load http://10.0.0.5:8080/ -c 4000 --on gen1,gen2 --fleet leader.toml
  regatta load ws://10.0.0.5:8080/ws -c 20000 --rate 200/s --on gen1,gen2

With --rate or --stages, each request is sent when it is due, even if earlier requests are still pending. Its
latency starts at the time it is due and has three parts: the wait for a free connection (caused by
the server), the send lag (caused by the load), and the service time. Before a send, the load spins
for 50 µs if --cpus has a CPU for each load thread and the process of --pid may not run on any of
these CPUs. Otherwise the load sleeps, and sends about 50 µs late.

With --on, the result also has the figures and the verdict of each machine. It does not work with
-n, --burst, --verify, --passing, --stalled and --unix-socket. Over ws://, the latency of a delivery is
that of members on the sender's machine; deliveries to others are listed with the bound of the clocks.

Not detected: wrong headers that the workload does not check, e.g. Date; a wrong Content-Length in a
reply to HEAD; and, if all replies are identical, a reply that was sent before its request.

Exit status: 0 loaded and judged; 1 a reply was wrong or missing (with --tolerate: too many were),
no reply arrived, a threshold of --fail-if did not pass, more than 1% of the requests of --rate, or of a
stage, were not sent or timed out, slow clients kept the server from serving new clients, or not all slow
connections could be opened; 2 wrong usage, the server cannot be reached or does not keep connections
open, a load process failed, or a machine of --on is absent or was lost; 130 after Ctrl-C.")]
pub struct LoadArgs {
    #[arg(help = format!("The server to load: {}", url::forms()))]
    pub url: String,
    /// Further nodes of the same hub: URLs with the same path. The members are spread over all nodes, and each
    /// must get every broadcast, also those of members at other nodes. Not with --on
    #[arg(value_name = "NODE_URL", conflicts_with_all = ["slow", "on", "unix_socket"])]
    pub nodes: Vec<String>,
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Number of open connections
    #[arg(short, long, default_value = "64", value_parser = connections, value_name = "N")]
    pub connections: NonZeroUsize,
    /// Length of the measurement window
    #[arg(short, long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub duration: Duration,
    /// Send exactly this many requests instead, without a warm-up; over ws://, once all members joined
    #[arg(short = 'n', long, value_parser = count, value_name = "N", conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Maximum requests in flight on each connection. Default: 1, with --burst 3
    #[arg(short, long, value_name = "N")]
    pub pipeline: Option<NonZeroUsize>,
    /// Total requests per second, e.g. 20k/s, scheduled in advance (open loop). Default: as fast as the
    /// replies arrive (closed loop)
    #[arg(short, long, value_parser = rate, value_name = "R", group = "schedule",
          conflicts_with_all = ["requests", "churn"])]
    pub rate: Option<NonZeroU32>,
    /// Parts of the window with their own rates (open loop), one after the other on the same connections,
    /// e.g. 10s:1k/s,30s:5k/s. Each has its own figures and verdict, and is compared with --fail-if. The
    /// warm-up has the first rate
    #[arg(long, value_parser = stage, value_delimiter = ',', value_name = "TIME:R,…", group = "schedule",
          conflicts_with_all = ["requests", "churn", "duration", "passing"])]
    pub stages: Vec<Stage>,
    /// Maximum requests in flight over all connections, which take turns. Use it with the
    /// broadcasts of ws://, e.g. 4
    #[arg(long, value_name = "N", conflicts_with_all = ["schedule", "churn", "pipeline", "burst", "slow"])]
    pub in_flight: Option<NonZeroU32>,
    /// Arrivals of the requests of --rate or --stages: poisson (as from many users) or constant (evenly spaced)
    #[arg(long, default_value = "poisson", requires = "schedule",
          value_parser = |text: &str| one_of(text, &Arrivals::ALL, Arrivals::name))]
    pub arrivals: Arrivals,
    /// Additional connections that send one request when they open and are then silent
    #[arg(long, default_value = "0", value_name = "N", conflicts_with_all = ["requests", "churn"])]
    pub idle: usize,
    /// Number of the --idle connections that stop reading after their request: slow consumers of a hub
    #[arg(long, default_value = "0", value_name = "N", requires = "idle")]
    pub stalled: usize,
    /// Additional members of a hub that join and leave during the whole load, about N per second. Each
    /// stays for up to 2 s, leaves by a Close frame or a reset, and is replaced. A broadcast that is
    /// sent while it is a member must reach it exactly once. (--churn on a hub opens a connection for
    /// every request and uses echoes, not broadcasts)
    #[arg(long, default_value = "0", value_name = "N", conflicts_with_all = ["requests", "churn", "burst", "slow"])]
    pub passing: usize,
    /// Run this many load instances at once, each with this many connections. Each connection connects,
    /// sends this many requests and closes. Reports how long each instance took
    #[arg(long, value_parser = shape_of_burst, value_name = "INSTANCESxCONNECTIONSxREQUESTS",
          conflicts_with_all = ["connections", "requests", "duration", "churn", "schedule", "idle"])]
    pub burst: Option<Shape>,
    /// Load threads in total; each process has the same number, at least one
    #[arg(short, long, default_value = "1", value_name = "N", conflicts_with = "on")]
    pub threads: NonZeroUsize,
    /// Load processes, at most 64; more are started if the limit of open files requires it
    #[arg(long, default_value = "1", value_name = "N", conflicts_with = "on",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub processes: usize,
    #[command(flatten)]
    pub on: OnArgs,
    /// Timeout of a reply, and of the whole of a stream. Calls of gRPC announce it to the server (grpc-timeout)
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub timeout: Duration,
    /// Exact length of the warm-up. Default: until the rate is steady, at most a second
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub warm_up: Option<Duration>,
    /// Warm up until the CPU per request of --pid is steady instead, at most this long. Reports how
    /// long that took and the initial cost of a request
    #[arg(long, value_parser = duration, value_name = "TIME", requires = "pid",
          conflicts_with_all = ["warm_up", "requests", "burst"])]
    pub settle: Option<Duration>,
    /// Open a new connection for every request, or for every conversation if the workload file has
    /// steps
    #[arg(long, conflicts_with = "pipeline")]
    pub churn: bool,
    /// What to send, and which replies to expect. line://: double (default), dialogue, echo (for an
    /// echo server), or your own workload file. http://: a GET of the path or the request of the HTTP
    /// options below (default), hello, hash, or a workload file. memcached://: cache (default), or a
    /// workload file. redis://: shard (a mix of all commands; default), or a workload file. grpc://: a call
    /// of the URL's method (default), or a workload file. ws://: hub (broadcasts; default), or hub-echo
    #[arg(long, value_parser = workload, value_name = "NAME|FILE.toml")]
    pub workload: Option<Workload>,
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Let all connections share their keys, and check linearizability after the load: for each key, a
    /// history checker decides whether some order of all operations explains all replies. For redis://.
    /// Without it, each connection has its own keys and its replies are checked when they arrive. The
    /// first 4 million operations on keys are checked; the result reports how many followed. Runs in
    /// one load process
    #[arg(long, conflicts_with = "slow")]
    pub verify: bool,
    /// Of a hub: all members must get all broadcasts in one order, also on several nodes. Without it, only
    /// those of one sender have an order, because many servers promise no more
    #[arg(long, conflicts_with_all = ["slow", "on"])]
    pub one_order: bool,
    /// Of a hub with a broker: count what it announces as lost, instead of failing: a gap, and broadcasts
    /// whose result says that they are not published, or that this is not known. These are in no rate and no
    /// latency. A delivery that is missing without an announcement is still an error
    #[arg(long, conflicts_with_all = ["slow", "on", "passing", "adapter"])]
    pub allow_gaps: bool,
    /// Request headers of hello and hash: varied as those of real users (default), or identical
    #[arg(long, value_name = "varied|identical", requires = "workload")]
    pub heads: Option<Heads>,
    /// Also measure the process PID and its descendants. With several servers, name one process of each
    /// (repeat, or separate by commas); more of them are added, e.g. that of a broker
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Pin the load threads to these CPUs
    #[arg(long, value_name = "CPUS", value_delimiter = ',', conflicts_with = "on")]
    pub cpus: Vec<u32>,
    /// Never sleep inside the window, because the cost of waking the load is charged to a server on the
    /// same machine. Requires one CPU for each load thread, and no server on these CPUs
    #[arg(long, conflicts_with = "on")]
    pub busy_poll: bool,
    /// Continue after wrong or missing replies, and count them: the load succeeds unless more than this
    /// share of all requests fails, or of a hub's deliveries. Without it, the first wrong reply stops the
    /// load
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    pub tolerate: Option<f64>,
    /// Fail with exit status 1 if a figure is beyond its limit (repeatable). Quote it, because the
    /// shell interprets > and <: 'p99>10ms' (p50, p90, p95, p99, p99.9, mean or max; of a hub, of its
    /// deliveries), 'across-p99>10ms' (of a hub, deliveries between machines of --on), 'rate<10k/s',
    /// 'errors>10', 'errors>0.1%', with --allow-gaps 'refused>0.1%', or with --pid 'cost>5us' (server
    /// CPU per request; of a hub, per delivery). Of streams of gRPC: 'message-rate<10k/s', 'first-p99>10ms' (first messages) and
    /// 'gap-p99>1s' (longest gaps). p99=10ms means 'p99>10ms', and rate=10k means 'rate<10k'. A
    /// figure that is void or not known fails too. A limit of errors above 0 implies --tolerate
    #[arg(long, value_parser = threshold, value_name = "'FIGURE>LIMIT'", conflicts_with = "slow")]
    pub fail_if: Vec<Threshold>,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub slow: SlowArgs,
    /// Seed of the requests and of their send times
    #[arg(long, default_value = "1", value_name = "S")]
    pub seed: u64,
    /// Write the rate, the errors and the latencies of each second to a file: .csv, or .jsonl for lines
    /// of JSON. A reply belongs to the second in which it arrived, and later ones to the last second
    #[arg(long, value_parser = series_file, value_name = "FILE.csv|FILE.jsonl", conflicts_with = "slow")]
    pub series: Option<SeriesFile>,
    /// Write the latencies of each second as an HdrHistogram V2 interval log, in nanoseconds. Intervals with
    /// tags are those of the whole window: of deliveries of a hub, and of those between machines (across)
    #[arg(long, value_name = "FILE", conflicts_with = "slow")]
    pub hdr_log: Option<PathBuf>,
    /// Write the result as JSON; - for stdout instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub http: HttpArgs,
    #[command(flatten)]
    pub grpc: GrpcArgs,
}

/// Options for slow clients.
#[derive(Clone, Debug, clap::Args)]
pub struct SlowArgs {
    /// Open slow connections instead: each sends its request one byte at a time, in the headers or in
    /// the body, and never completes it. Meanwhile new clients check that they are served
    #[arg(long, value_name = "headers|body",
          value_parser = |text: &str| one_of(text, &SlowPart::ALL, SlowPart::name),
          conflicts_with_all = ["requests", "pipeline", "schedule", "idle", "burst", "threads", "processes", "warm_up",
                                "churn", "workload", "pid", "cpus", "busy_poll", "on", "seed", "HttpArgs", "GrpcArgs"])]
    pub slow: Option<SlowPart>,
    /// Interval between two bytes of a slow connection
    #[arg(long, default_value = "1s", value_parser = limit, value_name = "TIME", requires = "slow")]
    pub every: Duration,
    /// Time limit for serving a new client beside the slow ones
    #[arg(long, default_value = "100ms", value_parser = limit, value_name = "TIME",
          requires = "slow")]
    pub within: Duration,
}

/// The shape of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub burst: Burst,
    /// Connections of each instance.
    pub connections: u32,
}

impl LoadArgs {
    /// Connections that are open at a time, without the idle and the passing ones.
    pub fn connections(&self) -> usize {
        let in_burst = |shape: Shape| shape.burst.instances as usize * shape.connections as usize;
        self.burst.map_or(self.connections.get(), in_burst)
    }

    /// How requests are sent. Clap has already refused conflicting flags.
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

    /// The share of the requests that may fail.
    pub fn tolerated(&self) -> Option<f64> {
        let implied = || self.fail_if.iter().filter_map(Threshold::tolerates).reduce(f64::min);
        self.tolerate.or_else(implied)
    }

    /// Maximum requests in flight on each connection.
    pub fn pipeline(&self) -> usize {
        let absent = if self.burst.is_some() { 3 } else { 1 };
        self.pipeline.map_or(absent, NonZeroUsize::get)
    }
}

/// Parses `10x500x10`: instances, connections of each, requests of each connection.
fn shape_of_burst(text: &str) -> Result<Shape, String> {
    let numbers: Option<Vec<u32>> =
        text.split('x').map(|number| number.parse().ok().filter(|n| *n > 0)).collect();
    match numbers.as_deref() {
        Some(&[instances, connections, requests]) => {
            Ok(Shape { burst: Burst { instances, requests }, connections })
        }
        _ => Err(
            "expected INSTANCESxCONNECTIONSxREQUESTS, with the connections of each instance and \
                  the requests of each connection, e.g. 10x500x10"
                .into(),
        ),
    }
}
