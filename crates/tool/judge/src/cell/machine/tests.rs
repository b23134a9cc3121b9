use super::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Slices of each life, their length, and operations in each.
const SLICES: u64 = 16;
const SLICE_NS: f64 = 25e6;
const COUNT: f64 = 25.0;
const RACES: u32 = 2_000;

/// The difference of two readings, each of which is rounded down.
fn steps(random: &mut SmallRng) -> f64 {
    let mut end = || random.random_range(0.0..MachineUse::STEP_NS);
    end() - end()
}

/// A machine that uses so many CPUs for a contender, 2% more or less from life to life, and none otherwise.
fn race(cpus: f64, lives: usize, random: &mut SmallRng) -> Machine {
    let life = |_| {
        // The sum of twelve uniform numbers is nearly normal, with a standard deviation of 1.
        let normal = (0..12).map(|_| random.random_range(-0.5..0.5)).sum::<f64>();
        let used = cpus * (1.0 + 0.02 * normal);
        let busy_ns: f64 = (0..SLICES).map(|_| used * SLICE_NS + steps(random)).sum();
        let used = MachineUse {
            spans: SLICES,
            ns: SLICES * SLICE_NS as u64,
            busy_ns: busy_ns as i64,
            ..MachineUse::default()
        };
        let busy_ns = steps(random) as i64;
        let alone = MachineUse { spans: 1, ns: 300_000_000, busy_ns, ..MachineUse::default() };
        OfLife { used, alone, count: COUNT * SLICES as f64, cpu_ns: 0.0 }
    };
    Machine::of((0..lives).map(life).collect())
}

/// Share of the intervals that have the truth, and the mean error, as fractions: of the estimator, and of the figures
/// that are shown, with the share of those.
struct Seen {
    covers: f64,
    widened_covers: f64,
    bias: f64,
    shown: f64,
}

fn seen(cpus: f64, lives: usize) -> Seen {
    let mut random = SmallRng::seed_from_u64(lives as u64);
    let truth = cpus * SLICE_NS / COUNT;
    let [mut covers, mut widened_covers, mut shown, mut bias] = [0.0; 4];
    for _ in 0..RACES {
        let machine = race(cpus, lives, &mut random);
        let cost = machine.cost().expect("an estimate");
        let contains = |cost: &Estimate| f64::from((cost.low..cost.high).contains(&truth));
        covers += contains(&cost);
        bias += cost.mean / truth - 1.0;
        let cost = widened(cost, machine.steps_ns());
        widened_covers += contains(&cost);
        shown += f64::from(is_known(&cost));
    }
    let [covers, widened_covers, bias, shown] =
        [covers, widened_covers, bias, shown].map(|sum| sum / f64::from(RACES));
    Seen { covers, widened_covers, bias, shown }
}

#[test]
fn intervals_have_the_truth_and_more_lives_make_it_more_known() {
    for cpus in [0.05, 0.10, 0.15, 0.4] {
        let mut shown = 0.0;
        for lives in [4, 20, 40] {
            let seen = seen(cpus, lives);
            let what = format!("{cpus} CPUs, {lives} lives: {:.3}, {:.3}", seen.covers, seen.bias);
            assert!((0.93..=0.97).contains(&seen.covers), "{what}");
            assert!(seen.widened_covers >= seen.covers, "{what}");
            assert!(seen.bias.abs() <= 0.03, "{what}");
            assert!(seen.shown >= shown, "{what}: shown {} after {shown}", seen.shown);
            shown = seen.shown;
        }
        assert!(shown > 0.99, "{cpus}: {shown}");
    }
}

#[test]
fn no_interval_is_narrower_than_the_steps() {
    let mut random = SmallRng::seed_from_u64(1);
    let narrow = (0..100).map(|_| race(0.4, 4, &mut random)).find(|machine| {
        let cost = machine.cost().unwrap();
        cost.high - cost.mean < machine.steps_ns()
    });
    let machine = narrow.expect("lives that are equal by luck");
    let (cost, half) = (machine.cost().unwrap(), machine.steps_ns());
    let wide = widened(cost, half);
    assert_eq!((wide.low, wide.high), (cost.mean - half, cost.mean + half));
}

#[test]
fn a_ratio_has_the_interval_of_the_totals() {
    let mut random = SmallRng::seed_from_u64(2);
    let mut covers = 0;
    for _ in 0..500 {
        let lives = |cpus, random: &mut SmallRng| -> Vec<Option<OfLife>> {
            race(cpus, 20, random).lives.into_iter().map(|(life, _)| Some(life)).collect()
        };
        let (a, b) = (lives(0.2, &mut random), lives(0.1, &mut random));
        let ratio = ratio(&a, &b).expect("both are above zero");
        covers += u32::from((ratio.low..ratio.high).contains(&2.0));
        assert!((ratio.mean / 2.0 - 1.0).abs() < 0.6, "{ratio:?}");
    }
    assert!(covers >= 465, "{covers} of 500");
    let none: Vec<Option<OfLife>> = vec![None; 20];
    assert!(ratio(&none, &none).is_none());
}

#[test]
fn a_baseline_that_another_program_disturbed_does_not_count() {
    let mut random = SmallRng::seed_from_u64(3);
    let mut lives: Vec<OfLife> = race(0.4, 3, &mut random).lives.iter().map(|(l, _)| *l).collect();
    let clean = Machine::of(lives.clone()).cost_ns(None);
    for (life, cpus) in lives.iter_mut().zip([1.01, 0.06, 0.03]) {
        life.alone.busy_ns = (cpus * life.alone.ns as f64) as i64;
    }
    assert_eq!(undisturbed(&lives), [false, true, true]);
    let machine = Machine::of(lives);
    assert!((machine.alone(None).cpus - 0.045).abs() < 0.001);
    assert!((machine.cost_ns(None) / clean - 1.0).abs() < 0.2, "{}", machine.cost_ns(None));
    assert!(machine.cost().is_some_and(|cost| is_known(&cost)), "{:?}", machine.cost());
}

#[test]
fn digits_below_the_error_are_rounded_off() {
    assert_eq!(rounded(1_919_861.0, 105_000.0), 1_900_000.0);
    assert_eq!(rounded(1_919_861.0, 99_000.0), 1_920_000.0);
    assert_eq!(rounded(0.056_789, 0.001), 0.057);
    assert_eq!([rounded(5.0, 0.0), rounded(0.0, 10.0)], [5.0, 0.0]);
}

#[test]
fn each_counter_that_is_rounded_by_itself_adds_its_error() {
    let lives = race(0.1, 4, &mut SmallRng::seed_from_u64(4)).lives;
    let of = |counters: u8| {
        let mut lives: Vec<OfLife> = lives.iter().map(|(life, _)| *life).collect();
        for life in &mut lives {
            (life.used.counters, life.alone.counters) = (counters, counters);
        }
        Machine::of(lives).steps_ns()
    };
    assert_eq!(of(0), of(1), "a record of an earlier version");
    assert!((of(3) / of(1) - 3_f64.sqrt()).abs() < 1e-9);
}
