//! Races whose contenders have a machine of their own, simulated: what that machine spends beyond their processes, and
//! lies that only this shows.

use crate::{
    duels::{NAMES, race},
    simulated::{
        LOAD,
        five::{cell, of},
        lives::{DUEL, in_duels, sum_up},
    },
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_judge::judge;
use regatta_record::{Doubt, Finding, MachineUse, Round, Summary};

const ALONE_NS: u64 = 300_000_000;

/// What a machine does beside the contenders' processes.
#[derive(Clone, Copy)]
struct Beside {
    /// Nanoseconds per operation, in interrupts.
    interrupts_ns: f64,
    /// CPUs of other programs, and of those that run only in slices.
    others: f64,
    in_slices: f64,
}

const QUIET: Beside = Beside { interrupts_ns: 1_000.0, others: 0.0, in_slices: 0.0 };

/// Adds what a machine with these figures reports of each life, in its steps.
fn on_a_machine(rounds: &mut [Round], beside: Beside, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    // Both ends of a stretch are rounded down.
    let mut steps = move |ns: f64| {
        let rounded = [0, 1].map(|_| random.random_range(0.0..MachineUse::STEP_NS));
        (ns + rounded[0] - rounded[1]) as i64
    };
    for life in rounds.iter_mut().filter_map(|round| round.life.as_mut()) {
        let mut all = MachineUse::default();
        for slice in &life.slices {
            // Messages make it longer.
            let ns = slice.ns + 500_000;
            let interrupts_ns = beside.interrupts_ns * slice.count as f64;
            let others_ns = (beside.others + beside.in_slices) * ns as f64;
            let busy_ns = slice.cpu_ns as f64 + interrupts_ns + others_ns;
            let (busy_ns, interrupts_ns) = (steps(busy_ns), interrupts_ns as u64);
            all += MachineUse { spans: 1, ns, busy_ns, interrupts_ns, counters: 1 };
        }
        life.machine = Some(all);
        let busy_ns = steps(beside.others * ALONE_NS as f64);
        let alone = MachineUse { spans: 1, ns: ALONE_NS, busy_ns, ..MachineUse::default() };
        life.machine_alone = Some(alone);
    }
}

fn judged(rounds: &[Round]) -> Summary {
    judge(&in_duels(&NAMES, DUEL.lives, &[LOAD]), rounds)
}

/// The findings that the machine shows; those of slices may be chance.
fn of_machine(summary: &Summary) -> Vec<&Finding> {
    let is_meant = |one: &&Finding| {
        use Doubt::*;
        let doubt = &one.doubt;
        matches!(
            doubt,
            WorkElsewhere { .. } | ServerMachineBusy { .. } | MachineRanksOtherwise { .. }
        )
    };
    summary.findings.iter().filter(is_meant).collect()
}

/// `node` has a part of its work done by processes that are not its own.
fn hands_over(rounds: &mut [Round], part: f64) {
    for round in of(rounds, "node") {
        for slice in &mut round.life.as_mut().unwrap().slices {
            slice.cpu_ns = (slice.cpu_ns as f64 * (1.0 - part)) as u64;
        }
        sum_up(round);
    }
}

#[test]
fn the_machine_of_a_contender_spends_its_processes_and_interrupts() {
    let (mut missed, mut accused) = (0, 0);
    for seed in 0..20 {
        let mut all = race(seed);
        on_a_machine(&mut all, QUIET, seed);
        let s = judged(&all);
        accused += usize::from(!of_machine(&s).is_empty());
        for (name, cost_ns) in [("epoll", 6_000.0), ("node", 9_600.0)] {
            let machine = cell(&s, name).machine.unwrap();
            let cost = machine.cost_ns_per_request.unwrap();
            missed += u32::from(!(cost.low..cost.high).contains(&cost_ns));
            assert!((cost.mean / cost_ns - 1.0).abs() < 0.05, "{name}: {cost:?}");
            assert!((machine.interrupts_ns_per_request - 1_000.0).abs() < 1.0, "{machine:?}");
            assert!(machine.cpus_alone < 0.05, "{machine:?}");
            // 64 slices and the baseline, 860,000 or 500,000 requests.
            let steps = machine.steps_ns_per_request / cost_ns;
            assert!((0.005..0.04).contains(&steps), "{steps}");
            let half_width = (cost.high - cost.mean).min(cost.mean - cost.low);
            assert!(half_width >= 0.95 * machine.steps_ns_per_request, "{cost:?}, {machine:?}");
        }
    }
    assert!(accused <= 1, "interrupts are the same for all, and {accused} of 20 races name some");
    assert!(missed <= 5, "{missed} of 40 intervals of 95% miss the truth");
}

#[test]
fn work_that_a_contender_hands_to_other_processes_is_in_the_cost_of_its_machine() {
    let mut all = race(6);
    on_a_machine(&mut all, QUIET, 6);
    hands_over(&mut all, 0.5);
    let s = judged(&all);
    let node = cell(&s, "node");
    assert!(node.cost_ns_per_request.unwrap().mean < 4_400.0, "the lie works");
    let machine = node.machine.unwrap().cost_ns_per_request.unwrap();
    assert!((machine.mean / 9_600.0 - 1.0).abs() < 0.05, "{machine:?}");
    let [elsewhere, ranks] = of_machine(&s)[..] else { panic!("{:?}", s.findings) };
    assert!([elsewhere, ranks].iter().all(|one| one.contender.as_deref() == Some("node")));
    let Doubt::WorkElsewhere { ns_per_operation, share, .. } = elsewhere.doubt else {
        panic!("{elsewhere:?}")
    };
    // Per second, the others have 0.2 of a CPU of interrupts, and `node` would have as much: a bound that suits both.
    assert!((ns_per_operation / 3_550.0 - 1.0).abs() < 0.1 && share > 0.7, "{elsewhere:?}");
    let Doubt::MachineRanksOtherwise { ratio, of_machine } = ranks.doubt else {
        panic!("{ranks:?}")
    };
    assert!((ratio - 0.86).abs() < 0.03 && (of_machine - 1.6).abs() < 0.1, "{ranks:?}");
}

/// Interrupts take as much as on a machine of 19 µs per request: of `epoll`, which sleeps when packets arrive, more of
/// them are beside its processes, as much as `more_ns`.
#[test]
fn a_cheap_contender_that_sleeps_when_packets_arrive_is_not_accused() {
    for (more_ns, accused) in [(1_500, false), (6_000, true)] {
        let mut all = race(4);
        on_a_machine(&mut all, Beside { interrupts_ns: 3_000.0, ..QUIET }, 4);
        for round in of(&mut all, "epoll") {
            let life = round.life.as_mut().unwrap();
            let count: u64 = life.slices.iter().map(|slice| slice.count).sum();
            life.machine.as_mut().unwrap().busy_ns += (more_ns * count) as i64;
        }
        let s = judged(&all);
        let is_named = |one: &&Finding| matches!(one.doubt, Doubt::WorkElsewhere { .. });
        let named = of_machine(&s).into_iter().filter(is_named).count();
        assert_eq!(named, usize::from(accused), "{more_ns}: {:?}", s.findings);
    }
}

/// Most kernels count an interrupt that hits a process in its time, too: here, all of them.
#[test]
fn interrupts_in_the_time_of_processes_are_not_subtracted_from_that_of_other_programs() {
    let mut all = race(5);
    on_a_machine(&mut all, Beside { interrupts_ns: 0.0, others: 0.5, ..QUIET }, 5);
    for life in all.iter_mut().filter_map(|round| round.life.as_mut()) {
        let cpu_ns: u64 = life.slices.iter().map(|slice| slice.cpu_ns).sum();
        life.machine.as_mut().unwrap().interrupts_ns = cpu_ns / 2;
    }
    let s = judged(&all);
    let [busy] = of_machine(&s)[..] else { panic!("{:?}", s.findings) };
    let Doubt::ServerMachineBusy { cpus, in_slices } = busy.doubt else { panic!("{busy:?}") };
    assert!((cpus - 0.5).abs() < 0.05 && in_slices.abs() < 0.05, "{busy:?}");
}

/// Programs that give way to contenders run before lives only.
#[test]
fn too_much_that_is_subtracted_is_said() {
    let mut all = race(7);
    on_a_machine(&mut all, Beside { others: 0.5, in_slices: -0.4, ..QUIET }, 7);
    let s = judged(&all);
    let [busy] = of_machine(&s)[..] else { panic!("{:?}", s.findings) };
    assert!(
        busy.doubt.to_string().contains(" less in slices, so too much is subtracted"),
        "{busy:?}"
    );
}

#[test]
fn a_slow_contender_is_not_accused_of_what_other_programs_do_meanwhile() {
    let accused = (0..10).filter(|seed| {
        let mut all = race(*seed);
        on_a_machine(&mut all, Beside { others: 0.5, ..QUIET }, *seed);
        let s = judged(&all);
        let cost = cell(&s, "node").machine.unwrap().cost_ns_per_request.unwrap();
        assert!((cost.mean / 9_600.0 - 1.0).abs() < 0.05, "{cost:?}: the others are subtracted");
        let findings = of_machine(&s);
        let [busy, rest @ ..] = &findings[..] else { panic!("nobody names the others") };
        let Doubt::ServerMachineBusy { cpus, in_slices } = busy.doubt else { panic!("{busy:?}") };
        assert!((cpus - 0.5).abs() < 0.05 && busy.contender.is_none(), "{cpus}");
        assert!(in_slices.abs() < 0.05, "{in_slices}");
        !rest.is_empty()
    });
    assert!(accused.count() <= 1);
}

#[test]
fn other_programs_that_run_only_in_slices_are_named_and_no_contender_is() {
    let mut all = race(3);
    on_a_machine(&mut all, Beside { in_slices: 0.3, ..QUIET }, 3);
    let s = judged(&all);
    let [busy] = of_machine(&s)[..] else { panic!("{:?}", s.findings) };
    let Doubt::ServerMachineBusy { cpus, in_slices } = busy.doubt else { panic!("{busy:?}") };
    assert!(cpus < 0.05 && (in_slices - 0.3).abs() < 0.05, "{busy:?}");
}

#[test]
fn a_life_whose_machine_was_not_read_in_each_slice_does_not_count() {
    let mut all = race(1);
    on_a_machine(&mut all, QUIET, 1);
    for round in of(&mut all, "node") {
        let machine = round.life.as_mut().unwrap().machine.as_mut().unwrap();
        machine.spans -= u64::from(round.round > 0);
    }
    let s = judged(&all);
    let one_life = cell(&s, "node").machine.unwrap();
    assert_eq!(one_life.cost_ns_per_request, None, "one life has no interval");
    assert!(cell(&s, "epoll").machine.unwrap().cost_ns_per_request.is_some());
    all.iter_mut().for_each(|round| round.life.as_mut().unwrap().machine_alone = None);
    assert_eq!(cell(&judged(&all), "epoll").machine, None, "nothing is known of the machine");
}
