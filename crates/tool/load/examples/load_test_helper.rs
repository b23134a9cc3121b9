//! The processes that the tests of this crate start: load processes, one that falsifies the reports of a
//! load process, and a leader that is killed.

#[path = "../tests/it/operations/dialect.rs"]
mod dialect;

use regatta_load::{
    LoadProcessConfig, Moment, Plan, Until, load_process, load_process_dialect, run_in_processes,
};
use regatta_record::{Counted, ProcessMessage};
use regatta_script::Workload;
use std::{
    io::{self, BufRead, BufReader, Write},
    process::{ChildStdin, Command, ExitCode, Stdio},
    sync::atomic::AtomicBool,
    thread,
    time::Duration,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // The mark distinguishes the processes of different tests.
        ["load-process", _mark] => load_process(),
        ["load-process-of-deliveries"] => {
            load_process_dialect(|_| dialect::Deliveries::new(dialect::Times::Made))
        }
        ["lie", what] => lie(what),
        ["lead", target, mark] => lead(target, mark),
        _ => panic!("unknown arguments {arguments:?}"),
    }
}

/// Runs an honest load process and forwards its messages. Falsifies the report of the second process of
/// a load.
fn lie(what: &str) -> ExitCode {
    let mut orders = io::stdin().lock();
    let mut line = String::new();
    orders.read_line(&mut line).expect("a message");
    let ask: serde_json::Value = serde_json::from_str(&line).expect("what is asked");
    let lies = ask["part"]["process"] == 1;
    if lies && what == "silent" {
        return ExitCode::from(7);
    }
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["load-process", "true"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut honest = command.spawn().expect("a load process");
    let mut to = honest.stdin.take().expect("a pipe");
    to.write_all(line.as_bytes()).expect("sent");
    drop(orders);
    thread::spawn(move || forward(to));
    for line in BufReader::new(honest.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("a report");
        let report: ProcessMessage = serde_json::from_str(&line).expect("a report");
        match report {
            ProcessMessage::Counted(counted) if lies => match changed(*counted, what) {
                Some(counted) => say(&ProcessMessage::Counted(Box::new(counted))),
                None => println!("all is well"),
            },
            report => say(&report),
        }
    }
    honest.wait().expect("it ended");
    ExitCode::SUCCESS
}

fn say(report: &ProcessMessage) {
    println!("{}", serde_json::to_string(report).expect("JSON"));
}

fn forward(mut to: ChildStdin) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if writeln!(to, "{line}").is_err() {
            return;
        }
    }
}

fn changed(counted: Counted, what: &str) -> Option<Counted> {
    Some(match what {
        "nothing" => counted,
        "precision" => {
            let mut histogram = hdrhistogram::Histogram::new_with_bounds(
                counted.histogram.low(),
                counted.histogram.high(),
                2,
            )
            .expect("bounds");
            histogram.add(&counted.histogram).expect("added");
            Counted { histogram, ..counted }
        }
        "requests" => Counted { requests: counted.requests + 1, ..counted },
        "slices" => Counted { slice_ns: counted.slice_ns + 1, ..counted },
        "format" => Counted { format: counted.format + 1, ..counted },
        "instances" => Counted { instances_ns: [(0, 5)].into(), ..counted },
        "words" => return None,
        _ => panic!("unknown lie {what}"),
    })
}

/// Leads two processes for a minute.
fn lead(target: &str, mark: &str) -> ExitCode {
    let plan = Plan {
        connections: 4,
        until: Until::Elapsed(Duration::from_secs(60)),
        ..Plan::closed(
            target.parse().expect("an address"),
            Workload::parse("double").expect("a workload"),
        )
    };
    let processes = LoadProcessConfig {
        program: std::env::current_exe().expect("own path"),
        arguments: vec!["load-process".into(), mark.into()],
        least: 2,
    };
    let never = AtomicBool::new(false);
    match run_in_processes(&plan, &processes, &mut |_: Moment| {}, &mut |_| {}, &never) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
