//! A race and a contender for tests, which change what they are about.

use crate::{
    ask::entrant::Entrant,
    contenders::{contender::Contender, manifest::Manifest},
};
use regatta_record::{Asked, CpuSets, Operation, Schedule, Setup};
use regatta_script::Workload;

/// A race of one round, without contenders and loads.
pub(crate) fn asked() -> Asked {
    Asked {
        format: 1,
        name: "x".into(),
        workload: "double".into(),
        cost_per: Operation::REQUESTS,
        latency_of: Operation::REQUESTS,
        contenders: vec![],
        baseline: "x".into(),
        twin_of: None,
        rounds: 1,
        precision: None,
        schedule: Schedule::Rounds,
        slice_s: None,
        time_s: None,
        fail_over: None,
        busy_poll: false,
        heads: None,
        window_s: 1.0,
        warm_up_s: 1.0,
        settle_s: 0.0,
        seed: 1,
        loads: vec![],
        cpus: CpuSets::default(),
        setup: Setup::default(),
        fingerprint: None,
        left_out: vec![],
        then_source: None,
        then: vec![],
        pilot: vec![],
        workload_file: None,
        entries: vec![],
    }
}

/// A contender of `double`, which is never started.
pub(crate) fn entrant(name: &str) -> Entrant {
    let text = format!(
        "name = \"{name}\"\nabout = \"x\"\nworkloads = [\"double\"]\nstart = [\"x\", \"{{port}}\"]\n"
    );
    Entrant {
        name: name.into(),
        speaks: Workload::parse("double").unwrap(),
        contender: Contender { manifest: Manifest::parse(&text).unwrap(), dir: "/".into() },
        running: None,
    }
}
