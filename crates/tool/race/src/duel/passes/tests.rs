use super::*;
use crate::{
    fixtures::{self, entrant},
    machine_error::MachineError,
};
use regatta_record::{Schedule, Settled};
use std::{collections::BTreeSet, path::Path, sync::atomic::AtomicBool};

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
fn each_life_and_load_has_orders_of_its_own() {
    with_duels(&asked(), |duels, entrants| {
        let mut all = BTreeSet::new();
        for life in 0..4 {
            let mut heat = heat(life, entrants);
            heat.loads.push(LoadShape { connections: 7, ..LOAD });
            for load in 0..2 {
                let plan = duels.plan(&heat, load, &[]);
                assert_eq!((plan.first_block, plan.baseline), (life as usize * MOST_BLOCKS, 1));
                assert!(plan.blocks.iter().all(|block| block.len() == entrants.len()));
                all.insert(plan.blocks);
            }
        }
        assert_eq!(all.len(), 8);
    });
}

#[test]
fn a_start_carries_all_loads_of_a_life() {
    let other = LoadShape::closed(9, 1);
    let asked = Asked { loads: vec![LOAD, other], ..asked() };
    with_duels(&asked, |duels, _| {
        let starts = [&[][..], &[LOAD], &[LOAD, other]].map(|due| duels.starts_of_pass(due));
        assert_eq!(starts, [0, 5, 5]);
    });
    // Three heats of three.
    with_duels(&Asked { slice_s: Some(1.0), ..asked.clone() }, |duels, _| {
        assert_eq!(duels.starts_of_pass(&[LOAD, other]), 9);
    });
}

#[test]
fn what_compiles_is_warmed_up_under_each_load() {
    use regatta_record::WarmUpClass::{Flat, WarmsUp};
    let other = LoadShape::closed(9, 1);
    let settling = |class, cold| regatta_record::Settling {
        class,
        observed_ns: 9_000_000_000,
        after_ns: if class == Flat { 0 } else { 4_000_000_000 },
        after_requests: 0,
        cold_for_ns: 0,
        cold_ns_per_request: cold,
        warm_ns_per_request: 1.0,
        from_localhost: None,
    };
    let asked = Asked { loads: vec![LOAD, other], settle_s: 20.0, ..asked() };
    let entrants = ["c0", "c1", "c2", "c3", "c1-twin"].map(entrant);
    let stop = AtomicBool::new(false);
    let context = RaceContext::new(&asked, Path::new("/"), &stop);
    let mut seen = Seen::default();
    let warm_ups = |seen: &mut Seen, life: u32, nth: usize| {
        let mut nowhere = Nowhere;
        let duels = Duels::new(&context, &entrants, seen, &mut nowhere);
        let heat = Heat::new(SEED, life, &[LOAD, other], entrants.iter().collect());
        let plan = duels.plan(&heat, nth, &[]);
        let of = |who: usize| plan.warm_ups[plan.raced.iter().position(|w| *w == who).unwrap()];
        [0, 1, 2, 3].map(of)
    };
    let longest = Duration::from_secs(20);
    assert_eq!(warm_ups(&mut seen, 0, 0), [WarmUp::Observed(longest); 4]);
    assert_eq!(warm_ups(&mut seen, 0, 1), [WarmUp::IfItChanged(longest / 4); 4]);
    for (name, class, cold) in
        [("c0", WarmsUp, 9.0), ("c1", Flat, 1.0), ("c2", WarmsUp, 1.3), ("c3", WarmsUp, 9.0)]
    {
        let (settling, slices) = (Some(settling(class, cold)), Vec::new());
        seen.add(Settled { format: 1, contender: name.into(), load: LOAD, settling, slices });
    }
    for (name, class, cold) in [("c3", WarmsUp, 2.0), ("c0", Flat, 1.0)] {
        let (settling, slices) = (Some(settling(class, cold)), Vec::new());
        seen.add(Settled { format: 1, contender: name.into(), load: other, settling, slices });
    }
    let none = WarmUp::For(Duration::ZERO);
    let [needs, least] = [longest / 4, longest / 3].map(WarmUp::For);
    assert_eq!(warm_ups(&mut seen, 1, 0), [least, none, WarmUp::Observed(longest), least]);
    let unseen = WarmUp::Observed(longest / 4);
    let again = WarmUp::For(longest / 6);
    assert_eq!(warm_ups(&mut seen, 1, 1), [again, none, unseen, needs]);
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
