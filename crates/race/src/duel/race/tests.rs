use super::*;
use crate::{contender::Contender, manifest::Manifest};
use regatta_host::Containment;
use regatta_record::{Asked, CpuSets, Operation, Schedule, Setup};
use regatta_script::Workload;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU32},
};

const SEED: u64 = 7;
const LOAD: LoadShape = LoadShape::closed(8, 1);

fn asked() -> Asked {
    Asked {
        format: 1,
        name: "x".into(),
        workload: "double".into(),
        cost_per: Operation::REQUESTS,
        latency_of: Operation::REQUESTS,
        contenders: vec![],
        baseline: "c1".into(),
        twin_of: Some("c1".into()),
        rounds: 3,
        precision: None,
        schedule: Schedule::Duels,
        slice_s: None,
        time_s: None,
        fail_over: None,
        busy_poll: false,
        heads: None,
        window_s: 1.0,
        warm_up_s: 1.0,
        settle_s: 0.0,
        seed: SEED,
        loads: vec![LOAD],
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

fn entrant(name: &str) -> Entrant {
    let text = format!(
        "name = \"{name}\"\nabout = \"x\"\nworkloads = [\"double\"]\nstart = [\"x\", \"{{port}}\"]\n"
    );
    Entrant {
        name: name.into(),
        speaks: Workload::parse("double").unwrap(),
        contender: Contender { manifest: Manifest::parse(&text).unwrap(), dir: PathBuf::from("/") },
        running: None,
    }
}

/// Calls `see` with the duels of a race of four contenders and the baseline's twin.
fn with_duels(asked: &Asked, see: impl FnOnce(&Duels<'_>, &[Entrant])) {
    let entrants = ["c0", "c1", "c2", "c3", "c1-twin"].map(entrant);
    let stop = AtomicBool::new(false);
    let context = RaceContext {
        asked,
        binary: Path::new("/"),
        containment: Containment::default(),
        stop: &stop,
        restless: AtomicU32::new(0),
    };
    let mut seen = Seen::default();
    see(&Duels::new(&context, &entrants, &mut seen), &entrants);
}

#[test]
fn each_life_goes_on_where_the_orders_of_the_race_are() {
    with_duels(&asked(), |duels, entrants| {
        let heat: Vec<&Entrant> = entrants.iter().collect();
        let orders = Orders::new(heat.len(), SEED);
        for life in 0..4 {
            let plan = duels.plan(life, 0, &LOAD, &heat, &[0, 1, 2, 3, 4], 1, &[]);
            assert_eq!((plan.first_block, plan.baseline), (life as usize * MOST_BLOCKS, 1));
            for (nth, block) in plan.blocks.iter().enumerate() {
                assert_eq!(block, orders.of_block(plan.first_block + nth), "life {life}");
            }
        }
    });
}

#[test]
fn the_baseline_and_its_twin_live_in_each_heat_of_a_race() {
    // Slices of a second: three contenders come round within the time that servers stay open.
    let asked = Asked { slice_s: Some(1.0), ..asked() };
    with_duels(&asked, |duels, _| {
        assert_eq!(duels.heats(&[LOAD]), [vec![1, 4, 0], vec![1, 4, 2], vec![1, 4, 3]]);
    });
}

#[test]
fn a_warm_up_that_is_no_longer_than_a_slice_is_the_first_block() {
    let warm_ups = |warm_up_s| {
        let mut found = Vec::new();
        with_duels(&Asked { warm_up_s, ..asked() }, |duels, entrants| {
            let heat: Vec<&Entrant> = entrants.iter().collect();
            found = duels.plan(1, 0, &LOAD, &heat, &[0, 1, 2, 3, 4], 1, &[]).warm_ups;
        });
        found
    };
    assert_eq!(warm_ups(SLICE.as_secs_f64()), [WarmUp::For(Duration::ZERO); 5]);
    assert_eq!(warm_ups(0.06), [WarmUp::For(Duration::from_millis(60)); 5]);
}
