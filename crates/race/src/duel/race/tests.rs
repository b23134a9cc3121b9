use super::*;
use crate::{
    context::MachineError,
    fixtures::{self, entrant},
};
use regatta_record::Schedule;
use std::{path::Path, sync::atomic::AtomicBool};

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

/// No life is run.
struct Nowhere;

impl RunsLives for Nowhere {
    fn run_life(&mut self, _: Life<'_>, _: &mut Events<'_>) -> Result<Option<Lived>, MachineError> {
        unreachable!("only plans are tested")
    }
}

/// Calls `see` with the duels of a race of four contenders and the baseline's twin.
fn with_duels(asked: &Asked, see: impl FnOnce(&Duels<'_>, &[Entrant])) {
    let entrants = ["c0", "c1", "c2", "c3", "c1-twin"].map(entrant);
    let stop = AtomicBool::new(false);
    let context = RaceContext::new(asked, Path::new("/"), &stop);
    see(&Duels::new(&context, &entrants, &mut Seen::default(), &mut Nowhere), &entrants);
}

/// A life of all contenders.
fn heat(life: u32, entrants: &[Entrant]) -> Heat<'_> {
    Heat::new(SEED, life, &[LOAD], entrants.iter().collect())
}

#[test]
fn each_life_goes_on_where_the_orders_of_the_race_are() {
    with_duels(&asked(), |duels, entrants| {
        let orders = Orders::new(entrants.len(), SEED);
        for life in 0..4 {
            let plan = duels.plan(&heat(life, entrants), 0, &[]);
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
            let both = [LOAD, LoadShape::closed(9, 1)];
            let heat = Heat::new(SEED, 1, &both, entrants.iter().collect());
            found = duels.plan(&heat, nth, &[]).warm_ups;
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
    let entrants = ["c0", "c1", "c2"].map(entrant);
    let life = |pass: u32| {
        let trial = |entrant| Trial { pass, entrant, load: LOAD, seed: SEED };
        entrants.iter().map(|one| trial(one).new_round(&asked, None)).collect::<Vec<_>>()
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
        all[..stored].iter().for_each(|round| _ = store.append(round.clone()).unwrap());
        let now = heat(u32::from(stored >= 3), &entrants);
        assert_eq!(now.is_due(store.rounds()), stored < 6, "{stored} are stored");
        let other = Heat { loads: vec![LoadShape::closed(9, 1)], ..heat(now.life, &entrants) };
        assert!(other.is_due(store.rounds()), "another load");
        if stored < 6 {
            now.forget_part(&mut store).unwrap();
        }
        assert_eq!(names(store.rounds()), names(&all[..stay]), "{stored} were stored");
        drop(store);
        assert_eq!(names(&Store::read(folder.path()).unwrap().1), names(&all[..stay]));
    }
}
