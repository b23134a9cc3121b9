//! The processes that the tests of this crate start: an agent, its load processes, and load processes that
//! report scripted counts.
//!
//! `agent KIND MARK` runs an agent whose load processes are `KIND MARK`: `load-process` or `scripted`. The mark
//! only serves to find the processes. With `load-process`, it has a site that echoes.
//!
//! `standing FILE CORES LIMIT KIND MARK` runs a standing agent whose sessions run such an agent, with this number of
//! CPUs. It may load this machine. The limit is a number of seconds, of requests per second (`100/s`), or `-`. `relay MARK FILE AGENT` is the leader's side of a session.

use hdrhistogram::Histogram;
use regatta_fleet::{
    NewSite, Site,
    nats::{self, AgentCommand, Policy},
};
use regatta_load::{
    Ask, LoadProcessConfig, Order, load_process,
    wire::{self, Inbox},
};
use regatta_record::{
    Counted, LeaderCommand, LoadProgress, Operation, OperationCounted, ProcessMessage,
};
use std::{
    env, io,
    process::{self, ExitCode},
    sync::mpsc,
    thread,
    time::Duration,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["agent", kind, mark] => {
            let program = env::current_exe().expect("own path");
            let arguments = vec![kind.to_owned(), mark.to_owned()];
            let how = LoadProcessConfig { program, arguments, least: 1 };
            let new_site: NewSite = |_| Box::new(Echo);
            regatta_fleet::agent(&how, "test", (kind != "scripted").then_some(new_site))
        }
        ["load-process", _] => load_process(),
        ["standing", file, cores, limit, kind, mark] => standing(file, cores, limit, [kind, mark]),
        ["relay", _, file, agent] => nats::relay(file.as_ref(), agent),
        ["scripted", _] => scripted(),
        _ => panic!("unknown arguments {arguments:?}"),
    }
}

fn standing(file: &str, cores: &str, limit: &str, [kind, mark]: [&str; 2]) -> ExitCode {
    let program = env::current_exe().expect("own path");
    let change = format!("s/\"cores\":[0-9]*/\"cores\":{cores}/");
    let script = format!("{} agent {kind} {mark} | sed -u '{change}'", program.display());
    let arguments = vec!["-c".into(), script.into()];
    let how = AgentCommand { program: "sh".into(), arguments };
    let policy = Policy {
        targets: vec!["127.0.0.0/8:1-65535".parse().expect("targets")],
        cores: cores.parse().expect("a number of CPUs"),
        max_rate: limit.strip_suffix("/s").map(|rate| rate.parse().expect("a rate")),
        max_connections: None,
        // Leaders of tests are patient.
        max_lease: Duration::from_secs(60),
        max_session: limit.parse().ok().map(Duration::from_secs),
    };
    let error = nats::standing(file.as_ref(), policy, how, "test", |line| eprintln!("{line}"));
    eprintln!("{}", error.expect_err("it never ends"));
    ExitCode::FAILURE
}

/// A site that answers what it is asked, except that it sleeps on `sleep` and ends the agent on `die`.
struct Echo;

impl Site for Echo {
    fn answer(&mut self, ask: serde_json::Value) -> Result<serde_json::Value, String> {
        match ask.as_str() {
            Some("sleep") => thread::sleep(Duration::from_millis(300)),
            Some("die") => process::exit(3),
            Some("refuse") => return Err("it was asked to refuse".into()),
            _ => {}
        }
        Ok(ask)
    }
}

/// A load process that sends nothing. What it counts follows from the numbers of its threads alone.
fn scripted() -> ExitCode {
    let mut inbox = Inbox::new(io::stdin());
    let ask: Ask = inbox.receive().expect("an ask").expect("an ask");
    let open = ask.part.of_process(ask.plan.connections as u64);
    let (sender, orders) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(Some(Order { order, .. })) = inbox.receive() {
            let _ = sender.send(order);
        }
        process::exit(1);
    });
    let mut progress = LoadProgress::default();
    loop {
        report(&ProcessMessage::Progress(progress.clone()));
        let Ok(order) = orders.recv_timeout(Duration::from_millis(20)) else {
            progress.settled += 1;
            continue;
        };
        progress = LoadProgress { entered: Some(order), open, ..progress };
        if order == LeaderCommand::End {
            break;
        }
    }
    report(&ProcessMessage::Counted(Box::new(counted(&ask))));
    loop {
        thread::park();
    }
}

/// Thread `t` counts `t + 1` latencies of each of a thousand lengths that depend on `t`, also as those of the messages of
/// streams.
fn counted(ask: &Ask) -> Counted {
    // The bounds and the precision of all histograms of a load.
    let mut histogram = Histogram::new_with_bounds(1, 240_000_000_000, 3).expect("bounds");
    for thread in ask.part.numbers().map(u64::from) {
        for nth in 1..=1_000 {
            histogram.record_n(nth * 997 * (thread + 1), thread + 1).expect("within bounds");
        }
    }
    let requests = histogram.len();
    let streams = |operation: Operation| {
        let mut histogram = histogram.clone();
        if operation.is_only_counted() {
            histogram.clear();
        }
        OperationCounted {
            count: requests,
            whole_run: 3 * requests,
            ..OperationCounted::nothing(operation, histogram)
        }
    };
    let kinds = [Operation::MESSAGES, Operation::FIRST_MESSAGES, Operation::LONGEST_GAPS];
    Counted {
        operations: kinds.map(streams).into(),
        requests,
        replies: requests,
        slices: vec![requests],
        window_ns: 100_000_000,
        load_cpu_ns: requests,
        connections_opened: ask.part.of_process(ask.plan.connections as u64),
        ..Counted::nothing(histogram, 10_000_000, &[])
    }
}

fn report(message: &ProcessMessage) {
    if wire::send(io::stdout(), message).is_err() {
        process::exit(1);
    }
}
