use super::*;
use crate::fixtures::{self, entrant};
use regatta_host::Containment;
use regatta_record::{Asked, Schedule};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU32},
};

const SEED: u64 = 7;
const LOAD: LoadShape = LoadShape::closed(8, 1);

fn asked() -> Asked {
    let schedule = Schedule::Duels;
    let twin_of = Some("c1".into());
    Asked {
        baseline: "c1".into(),
        twin_of,
        rounds: 3,
        schedule,
        seed: SEED,
        loads: vec![LOAD],
        ..fixtures::asked()
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
    with_duels(&asked, |_, entrants| {
        assert_eq!(
            heats_of(&asked, entrants, &[LOAD]),
            [vec![1, 4, 0], vec![1, 4, 2], vec![1, 4, 3]]
        );
    });
}

#[test]
fn a_warm_up_that_is_no_longer_than_a_slice_is_the_first_block() {
    let warm_ups = |warm_up_s, nth| {
        let mut found = Vec::new();
        with_duels(&Asked { warm_up_s, slice_s: Some(0.05), ..asked() }, |duels, entrants| {
            let heat: Vec<&Entrant> = entrants.iter().collect();
            found = duels.plan(1, nth, &LOAD, &heat, &[0, 1, 2, 3, 4], 1, &[]).warm_ups;
        });
        found
    };
    assert_eq!(warm_ups(0.05, 0), [WarmUp::For(Duration::ZERO); 5]);
    assert_eq!(warm_ups(0.06, 0), [WarmUp::For(Duration::from_millis(60)); 5]);
    assert_eq!(warm_ups(0.06, 1), [WarmUp::For(Duration::ZERO); 5], "warm from the first load");
}

#[test]
fn of_an_incomplete_life_only_what_decided_a_cell_for_good_stays() {
    let asked = asked();
    let stop = AtomicBool::new(false);
    let context = RaceContext {
        asked: &asked,
        binary: Path::new("/"),
        containment: Containment::default(),
        stop: &stop,
        restless: AtomicU32::new(0),
    };
    let entrants = ["c0", "c1", "c2"].map(entrant);
    let heat: Vec<&Entrant> = entrants.iter().collect();
    let life = |life: u32| {
        let round = |one: &Entrant| round::new_round(&context, life, one, LOAD, SEED, None);
        entrants.iter().map(round).collect::<Vec<_>>()
    };
    let mut second = life(1);
    second[2].outcome = Outcome::Failed { because: "it died".into() };
    second.sort_by_key(is_forgettable);
    let all = [life(0), second].concat();
    let names = |rounds: &[Round]| -> Vec<(u32, String)> {
        rounds.iter().map(|round| (round.round, round.contender.clone())).collect()
    };
    for (stored, stay) in [(0, 0), (1, 0), (2, 0), (3, 3), (4, 4), (5, 4), (6, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path(), &asked).unwrap();
        all[..stored].iter().for_each(|round| store.append(round).unwrap());
        let mut rounds = all[..stored].to_vec();
        let life = u32::from(stored >= 3);
        assert_eq!(is_due(life, &[LOAD], &heat, &rounds), stored < 6, "{stored} are stored");
        assert!(is_due(life, &[LoadShape::closed(9, 1)], &heat, &rounds), "another load");
        if stored < 6 {
            forget_part(life, &[LOAD], &heat, &mut store, &mut rounds).unwrap();
        }
        assert_eq!(names(&rounds), names(&all[..stay]), "{stored} were stored");
        drop(store);
        assert_eq!(names(&Store::read(folder.path()).unwrap().1), names(&rounds));
    }
}
