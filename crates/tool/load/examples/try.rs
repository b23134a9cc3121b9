//! Runs the load against a running server: `try ADDR WORKLOAD CONNECTIONS PIPELINE SECONDS [CPU PID]`.
//! With PIPELINE 0, every request has its own connection. PID is a single-threaded server, such as the
//! example `echo_server`: its CPU time in the window is printed together with the load's.

use regatta_load::{Drive, LoadObserver, Moment, Plan, Until, WarmUp, run};
use regatta_script::Workload;
use std::{sync::atomic::AtomicBool, time::Duration};

/// Reads the CPU time of a process's first thread, in nanoseconds, at both edges of the window.
struct Watched {
    pid: Option<String>,
    cpu_ns: u64,
}

impl Watched {
    fn read(&self) -> u64 {
        let Some(pid) = &self.pid else { return 0 };
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

impl LoadObserver for Watched {
    fn at(&mut self, moment: Moment) {
        match moment {
            Moment::WindowOpens => self.cpu_ns = self.read(),
            Moment::WindowCloses => self.cpu_ns = self.read() - self.cpu_ns,
            _ => {}
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args[i].parse::<usize>().expect("a number");
    let plan = Plan {
        connections: number(2),
        pipeline: number(3).max(1),
        drive: if number(3) == 0 { Drive::Churn } else { Drive::Closed },
        cpus: args.get(5).map(|cpu| cpu.parse().expect("a CPU")).into_iter().collect(),
        timeout: Duration::from_secs(5),
        warm_up: WarmUp::steady(Duration::from_secs(1)),
        until: Until::Elapsed(Duration::from_secs(number(4) as u64)),
        ..Plan::closed(
            args[0].parse().expect("an address"),
            Workload::parse(&args[1]).expect("a workload"),
        )
    };
    let mut watched = Watched { pid: args.get(6).cloned(), cpu_ns: 0 };
    match run(&plan, &mut watched, &mut |_| {}, &AtomicBool::new(false)) {
        Ok(tally) => {
            let rate = tally.requests as f64 / (tally.window_ns as f64 / 1e9);
            let each = |cpu_ns: u64| cpu_ns as f64 / tally.requests as f64;
            let at = |q| tally.histogram.value_at_quantile(q) / 1_000;
            println!("{} requests, {rate:.0}/s", tally.requests);
            println!(
                "CPU: load {:.0} ns, server {:.0} ns",
                each(tally.load_cpu_ns),
                each(watched.cpu_ns)
            );
            println!("p50 {} us, p99 {} us", at(0.5), at(0.99));
            println!("{:?} {:?}", tally.errors, tally.first_wrong);
        }
        Err(error) => println!("{error}"),
    }
}
