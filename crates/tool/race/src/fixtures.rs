//! A race and a contender for tests, which change what they are about.

use crate::{
    ask::entrant::Entrant,
    contenders::{find_contenders::Contender, manifest::Manifest},
};
use regatta_record::{Asked, Schedule};
use regatta_script::Workload;

/// A race of one round, without contenders and loads.
pub(crate) fn asked() -> Asked {
    Asked {
        format: 1,
        name: "x".into(),
        workload: "double".into(),
        baseline: "x".into(),
        rounds: 1,
        schedule: Schedule::Rounds,
        window_s: 1.0,
        warm_up_s: 1.0,
        seed: 1,
        ..Asked::default()
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
