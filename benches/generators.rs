//! Compares load generators: the same nginx, the same connections, one core each, in rounds of random
//! order. The figure is a generator's CPU time per request that the server counted, from the start of
//! the generator's process to its end, including preparation.
//!
//! `cargo bench --bench generators -- --help`

#[path = "counting.rs"]
mod counting;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use regatta_host::{ObservedProcesses, find_on_path, search_path};
use regatta_judge::statistics::geometric;
use regatta_record::Estimate;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Compares load generators that are on PATH with `regatta load`.
#[derive(Parser)]
struct Args {
    /// Rounds; each runs every generator once
    #[arg(long, default_value = "7")]
    rounds: u32,
    /// Seconds of each run
    #[arg(long, default_value = "3")]
    seconds: u32,
    /// Connections, kept alive
    #[arg(long, default_value = "64")]
    connections: u32,
    /// CPU of the server
    #[arg(long, default_value = "0")]
    server_cpu: u32,
    /// CPU of the generator
    #[arg(long, default_value = "1")]
    load_cpu: u32,
    /// Run only these generators
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The regatta binary to compare
    #[arg(long, default_value = env!("CARGO_BIN_EXE_regatta"), value_name = "PROGRAM")]
    regatta: String,
    /// Run as the client that only counts bytes, against this address
    #[arg(long, hide = true)]
    count: Option<SocketAddr>,
    /// How it waits
    #[arg(long, hide = true, default_value = "epoll")]
    wait: counting::Wait,
    /// Passed by cargo to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// A load generator and its command line.
struct Generator {
    name: &'static str,
    program: &'static str,
    /// `{url} {c} {s}` are filled in.
    arguments: &'static str,
    /// The parts of a reply that it checks.
    checks: &'static str,
}

/// Stands for the program of `--regatta`.
const REGATTA: &str = "{regatta}";

/// Stands for this program.
const THIS: &str = "{this}";

/// The generators, each with one thread and its default report.
const GENERATORS: [Generator; 10] = [
    Generator {
        name: "counting",
        program: THIS,
        arguments: "--count {address} --connections {c} --seconds {s}",
        checks: "nothing: it counts bytes",
    },
    Generator {
        name: "counting-ring",
        program: THIS,
        arguments: "--count {address} --connections {c} --seconds {s} --wait ring",
        checks: "nothing: it counts bytes",
    },
    Generator {
        name: "regatta",
        program: REGATTA,
        arguments: "load {url} --workload hello -c {c} -d {s}s --warm-up 0s --json -",
        checks: "status, framing, content",
    },
    Generator {
        name: "wrk",
        program: "wrk",
        arguments: "-t 1 -c {c} -d {s}s --latency {url}",
        checks: "status",
    },
    Generator {
        name: "ab",
        program: "ab",
        arguments: "-q -k -c {c} -t {s} -n 10000000 {url}",
        checks: "status and length",
    },
    Generator {
        name: "h2load",
        program: "h2load",
        arguments: "--h1 -t 1 -c {c} -D {s} {url}",
        checks: "status",
    },
    Generator {
        name: "oha",
        program: "oha",
        arguments: "--no-tui -c {c} -z {s}s {url}",
        checks: "status",
    },
    Generator {
        name: "bombardier",
        program: "bombardier",
        arguments: "-l -c {c} -d {s}s {url}",
        checks: "status",
    },
    Generator {
        name: "fortio",
        program: "fortio",
        arguments: "load -quiet -qps 0 -c {c} -t {s}s {url}",
        checks: "status",
    },
    Generator {
        name: "hey",
        program: "hey",
        arguments: "-cpus 1 -c {c} -z {s}s {url}",
        checks: "status",
    },
];

/// The result of one run.
struct Run {
    requests: u64,
    load_us_per_request: f64,
    server_us_per_request: f64,
    rate_per_s: f64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(target) = args.count {
        let lasts = Duration::from_secs(args.seconds.into());
        println!("{} replies", counting::run(target, args.connections, lasts, args.wait)?);
        return Ok(());
    }
    let (there, absent): (Vec<_>, Vec<_>) = GENERATORS
        .iter()
        .filter(|one| args.only.is_empty() || args.only.iter().any(|name| name == one.name))
        .partition(|one| is_there(&program(one, &args)));
    ensure!(!there.is_empty(), "none of the selected generators is on PATH");
    ensure!(args.rounds > 0 && args.seconds > 0, "rounds and seconds must be at least 1");
    let mut server = Server::start(args.server_cpu)?;
    let mut runs: Vec<Vec<Run>> = there.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..there.len()).collect();
    let mut random = StdRng::seed_from_u64(1);
    for round in 1..=args.rounds {
        order.shuffle(&mut random);
        for &i in &order {
            let run = server.load(there[i], &args).with_context(|| there[i].name)?;
            eprintln!(
                "round {round} of {}: {:13} {:6.2} µs/request, {} requests",
                args.rounds, there[i].name, run.load_us_per_request, run.requests
            );
            runs[i].push(run);
        }
    }
    server.stop()?;
    print(&there, &runs, &args);
    for one in absent {
        println!("skipped: {} is not on PATH", one.name);
    }
    Ok(())
}

fn print(generators: &[&Generator], runs: &[Vec<Run>], args: &Args) {
    println!(
        "{} connections kept alive to nginx on CPU {}, generators on CPU {}, {} rounds of {} s; \
         95% intervals",
        args.connections, args.server_cpu, args.load_cpu, args.rounds, args.seconds
    );
    println!(
        "{:13}  {:20}  {:20}  {:20}  {:>7}  {:>9}  checks",
        "generator", "µs CPU per request", "× counting", "× wrk", "k req/s", "server µs"
    );
    let named = |name: &str| generators.iter().position(|one| one.name == name).map(|i| &runs[i]);
    let cost = |run: &Run| run.load_us_per_request;
    for (generator, own) in generators.iter().zip(runs) {
        let logs = |figure: &dyn Fn(&Run) -> f64| own.iter().map(|run| figure(run).ln()).collect();
        let shown = |logs: Vec<f64>| geometric(&logs, 1).map_or("–".into(), |it| interval(&it));
        let to = |other: Option<&Vec<Run>>| {
            other.map_or("–".into(), |other| {
                shown(own.iter().zip(other).map(|(a, b)| (cost(a) / cost(b)).ln()).collect())
            })
        };
        let mean = |figure: &dyn Fn(&Run) -> f64| {
            let logs: Vec<f64> = logs(figure);
            (logs.iter().sum::<f64>() / logs.len() as f64).exp()
        };
        println!(
            "{:13}  {:20}  {:20}  {:20}  {:7.1}  {:9.2}  {}",
            generator.name,
            shown(logs(&cost)),
            to(named("counting")),
            to(named("wrk")),
            mean(&|run| run.rate_per_s / 1e3),
            mean(&|run| run.server_us_per_request),
            generator.checks
        );
    }
}

fn interval(it: &Estimate) -> String {
    format!("{:.2} [{:.2}–{:.2}]", it.mean, it.low, it.high)
}

/// The nginx that the generators load.
struct Server {
    child: Child,
    port: u16,
    _run: tempfile::TempDir,
}

impl Server {
    fn start(cpu: u32) -> anyhow::Result<Server> {
        // Checked here because `taskset` starts even if nginx is missing.
        ensure!(is_there("nginx"), "nginx is not on PATH; on Debian: apt-get install nginx-light");
        let run = tempfile::tempdir()?;
        // Free a moment ago. If another program takes it meanwhile, nginx fails with an error.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let folder = run.path().display().to_string();
        let config = include_str!("nginx.conf.in")
            .replace("{run}", &folder)
            .replace("{port}", &port.to_string());
        let path = run.path().join("nginx.conf");
        fs::write(&path, config)?;
        let child = pinned(cpu, "nginx")
            .args(["-p", &folder, "-e", &format!("{folder}/error.log"), "-c"])
            .arg(&path)
            .spawn()
            .context("taskset cannot be started; on Debian: apt-get install util-linux")?;
        let mut server = Server { child, port, _run: run };
        let deadline = Instant::now() + Duration::from_secs(5);
        while server.requests().is_err() {
            ensure!(server.child.try_wait()?.is_none(), "nginx exited during its start");
            ensure!(Instant::now() < deadline, "nginx did not answer within 5 s");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Returns the number of requests that nginx has counted, including this one.
    fn requests(&self) -> anyhow::Result<u64> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /count HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        // "server accepts handled requests", and the three numbers below it.
        let numbers = text.lines().skip_while(|line| !line.starts_with("server")).nth(1);
        let count = numbers.and_then(|line| line.split_whitespace().nth(2)?.parse().ok());
        count.with_context(|| format!("no request count in nginx's reply {text:?}"))
    }

    fn load(&mut self, generator: &Generator, args: &Args) -> anyhow::Result<Run> {
        let arguments = generator
            .arguments
            .replace("{url}", &format!("http://127.0.0.1:{}/", self.port))
            .replace("{address}", &format!("127.0.0.1:{}", self.port))
            .replace("{c}", &args.connections.to_string())
            .replace("{s}", &args.seconds.to_string());
        let server = ObservedProcesses::tree(self.child.id());
        let (counted, used) = (self.requests()?, server.usage()?);
        let began = Instant::now();
        let mut child = pinned(args.load_cpu, &program(generator, args))
            .args(arguments.split(' '))
            .env("GOMAXPROCS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let load_cpu_s = cpu_until_end(&child)?;
        let took = began.elapsed();
        let status = child.wait()?;
        ensure!(status.success(), "{} {status}", generator.name);
        let server_ns = server.usage()?.since(&used).cpu_ns;
        let requests = self.requests()? - counted - 1;
        ensure!(requests > 0, "{} sent no requests", generator.name);
        Ok(Run {
            requests,
            load_us_per_request: load_cpu_s * 1e6 / requests as f64,
            server_us_per_request: server_ns as f64 / 1e3 / requests as f64,
            rate_per_s: requests as f64 / took.as_secs_f64(),
        })
    }

    fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

fn program(generator: &Generator, args: &Args) -> String {
    let this = std::env::current_exe().unwrap_or_default();
    generator.program.replace(REGATTA, &args.regatta).replace(THIS, &this.to_string_lossy())
}

/// Waits until a process exits, and returns its CPU time in seconds. Leaves the process to be reaped.
fn cpu_until_end(child: &Child) -> anyhow::Result<f64> {
    let pid = Pid::from_child(child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    // proc_pid_stat(5): utime and stime are fields 14 and 15; the name, field 2, may hold spaces.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let ticks: Option<Vec<u64>> =
        fields.split_whitespace().skip(11).take(2).map(|field| field.parse().ok()).collect();
    let Some(ticks) = ticks.filter(|ticks| ticks.len() == 2) else {
        bail!("cannot parse /proc/{}/stat: {stat}", child.id())
    };
    Ok(ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn pinned(cpu: u32, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), program]).env("PATH", search_path());
    command
}

fn is_there(program: &str) -> bool {
    if program.contains('/') {
        Path::new(program).is_file()
    } else {
        find_on_path(program).is_some()
    }
}
