//! Tries the load on a server that runs: `try ADDR WORKLOAD CONNECTIONS PIPELINE SECONDS [CPU]`;
//! with PIPELINE 0, a connection for every request.

use regatta_load::{Edges, Plan, Until, WarmUp, Workload, run};
use std::{sync::atomic::AtomicBool, time::Duration};

struct Nobody;

impl Edges for Nobody {
    fn window_opens(&mut self) {}
    fn window_closes(&mut self) {}
    fn connections_open(&mut self) {}
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args[i].parse::<usize>().expect("a number");
    let plan = Plan {
        target: args[0].parse().expect("an address"),
        workload: Workload::parse(&args[1]).expect("a workload"),
        connections: number(2),
        pipeline: number(3).max(1),
        threads: 1,
        cpus: args.get(5).map(|cpu| cpu.parse().expect("a CPU")).into_iter().collect(),
        timeout: Duration::from_secs(5),
        patience: Plan::PATIENCE,
        warm_up: WarmUp::Steady { longest: Duration::from_secs(1) },
        until: Until::Elapsed(Duration::from_secs(number(4) as u64)),
        churn: number(3) == 0,
        seed: 1,
    };
    match run(&plan, &mut Nobody, &mut |_| {}, &AtomicBool::new(false)) {
        Ok(tally) => {
            let rate = tally.requests as f64 / (tally.window_ns as f64 / 1e9);
            let cost = tally.load_cpu_ns as f64 / tally.requests as f64;
            let at = |q| tally.histogram.value_at_quantile(q) / 1_000;
            println!("{} requests, {rate:.0}/s, {cost:.0} ns of load CPU each", tally.requests);
            println!(
                "p50 {} us, p99 {} us, warm-up {} ms",
                at(0.5),
                at(0.99),
                tally.warm_up_ns / 1_000_000
            );
            println!("{:?} {:?}", tally.errors, tally.first_wrong);
        }
        Err(error) => println!("{error}"),
    }
}
