//! Prints the summary of a simulated race over the axes other than connections and pipelining: idle
//! connections, requested rates, shared and separate cores, a burst with historical figures.
//!
//! `cargo run -p regatta-judge --example simulated_axes > crates/tool/report/tests/axes.json`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{
    Asked, Burst, Drive, HistoricResult, KernelGrowth, KernelMemorySource, LoadShape, Round,
};
use simulated::{LOAD, QUIET, asked, on, open, rounds, truth};

const IDLE: LoadShape = LoadShape { idle: 10_000, ..LoadShape::closed(10, 1) };
const BURST: LoadShape = LoadShape {
    drive: Drive::Burst(Burst { instances: 10, requests: 10 }),
    ..LoadShape::closed(5_000, 3)
};
const LOADS: [LoadShape; 7] =
    [LOAD, IDLE, on(1, open(20_000)), on(2, open(20_000)), CLOSED[0], CLOSED[1], BURST];
const CLOSED: [LoadShape; 2] =
    [LoadShape { cores: Some(1), ..LoadShape::closed(64, 16) }, LoadShape { pipeline: 16, ..LOAD }];

fn main() {
    let field = [
        truth("epoll", 4_410.0),
        truth("epoll-twin", 4_410.0),
        truth("null", 3_700.0),
        truth("percore", 4_425.0),
        truth("cluster", 4_990.0),
        truth("haskell-conduit", 9_350.0),
        truth("node", 7_640.0),
    ];
    let names: Vec<&str> = field.iter().map(|truth| truth.name).collect();
    let mut rounds = rounds(&field, &LOADS, 7, QUIET, 11);
    rounds.iter_mut().for_each(shape);
    let mut asked = asked(&names, 7, &LOADS);
    describe(&mut asked);
    let summary = judge(&asked, &rounds);
    println!("{}", serde_json::to_string_pretty(&summary).expect("a summary is plain data"));
}

/// Changes the figures of a round according to its load.
fn shape(round: &mut Round) {
    let held = round.load.drive.rate().map(|rate| u64::from(rate.get())).map(|rate| {
        match round.contender.as_str() {
            "haskell-conduit" => rate * 4 / 5,
            _ => rate,
        }
    });
    let of = held.map_or(1.0, |rate| rate as f64 * 2.0 / round.requests as f64);
    let server = round.server.as_mut().expect("all simulated servers are observed");
    for ns in [&mut server.cpu_ns, &mut server.user_ns, &mut server.system_ns] {
        *ns = (*ns as f64 * of) as u64;
    }
    round.requests = (round.requests as f64 * of) as u64;
    round.load_cpu_ns = (round.load_cpu_ns as f64 * of) as u64;
    if round.load.drive.burst().is_some() {
        let each = server.cpu_ns / round.requests * 500_000;
        round.instances_ns = (0..10).map(|i| each + i * 3_000_000).collect();
    } else if round.load.idle > 0 {
        let connections = i64::from(round.load.max_open_connections());
        server.user_growth_bytes = Some(connections * 312);
        let source = KernelMemorySource::BothEnds;
        server.kernel_growth = Some(KernelGrowth { bytes: connections * 7_424, source });
    }
}

fn describe(asked: &mut Asked) {
    asked.name = "axes".to_owned();
    asked.left_out = vec!["64 conn on 8 CPUs: there are 2 to use".to_owned()];
    asked.then_source = Some("<b>“An article”</b> (2013)".to_owned());
    let then = |contender: &str, figure: &str, note: &str| HistoricResult {
        contender: contender.to_owned(),
        figure: Some(figure.to_owned()),
        note: Some(note.to_owned()),
        loads: vec![BURST],
    };
    asked.then =
        vec![then("haskell-conduit", "8.0 s", "one core"), then("node", "8.94 s", "one process")];
    for entry in &mut asked.entries {
        entry.one_core_as =
            ["percore", "cluster"].contains(&&entry.name[..]).then(|| "epoll".to_owned());
    }
}
