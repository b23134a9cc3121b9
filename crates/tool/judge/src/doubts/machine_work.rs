//! What the CPU of the contenders' whole machine shows: work for a contender that is not in its cost, and other
//! programs there.

use super::duels::{Case, significant};
use crate::{
    cell::{
        machine::{self, Alone, Machine, OfLife, lives},
        observed::CellRounds,
    },
    compared::field::Field,
    statistics::median,
};
use regatta_record::{Asked, Doubt, Finding};

/// Significance level, after Holm's correction.
const CHANCE: f64 = 0.01;
/// Least work of the rest of the machine, as a fraction of the cost. Servers differ honestly in the number of their
/// packets, so it is more than on one machine.
const REST: f64 = 0.05;
/// CPUs that the machine uses while no contender runs, from which machine costs are doubtful.
const ALONE: f64 = 0.05;
/// CPUs that other processes use at least beyond that in slices, from which they are so: in the middle over the
/// contenders, so that none of them decides it. The agent and `sshd` need a hundredth.
const IN_SLICES: f64 = 0.1;

/// The findings on all loads that were raced in duels.
pub fn findings(asked: &Asked, fields: &[Field]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = busy(fields).into_iter().collect();
    findings.extend(rest(fields));
    findings.extend(fields.iter().flat_map(|field| ranked_otherwise(asked, field)));
    findings
}

/// Other programs that use the machine, while no contender runs or in the slices of all of them.
fn busy(fields: &[Field]) -> Option<Finding> {
    let cells = fields.iter().flat_map(|field| &field.contenders);
    let by_cell: Vec<Vec<OfLife>> =
        cells.map(|observed| lives(observed).into_iter().flatten().collect()).collect();
    let alone = Alone::of(by_cell.iter().flatten());
    let beyond = |lives: &Vec<OfLife>| {
        let sum = |of: &dyn Fn(&OfLife) -> f64| lives.iter().map(of).sum::<f64>();
        let (rest, interrupts) =
            (sum(&|life| life.rest_ns(&alone)), sum(&|life| life.interrupts_ns(&alone)));
        // Interrupts that hit a process are in its time, so at most the rest is theirs.
        let others = rest - interrupts.clamp(0.0, rest.max(0.0));
        Some(others / sum(&OfLife::ns)).filter(|share| share.is_finite())
    };
    let in_slices = median(by_cell.iter().filter_map(beyond).collect())?;
    let cpus = alone.cpus.max(0.0);
    let doubt = Doubt::ServerMachineBusy { cpus, in_slices };
    let is_busy = cpus > ALONE || in_slices > IN_SLICES;
    is_busy.then_some(Finding { contender: None, load: None, doubt })
}

/// CPU that the rest of the machine uses in the slices of one contender: more per operation than in those of the
/// others, also more per second, because a slow contender takes longer for an operation, and more than interrupts are. A
/// packet that arrives while a server sleeps is in the rest, and one that hits it is in its cost, so an honest server
/// that is cheap and sleeps has more rest than others.
fn rest(fields: &[Field]) -> Vec<Finding> {
    let cases = fields.iter().flat_map(|field| {
        let by_life = excess(field).into_iter().enumerate();
        by_life.filter_map(|(who, values)| Case::of(field, who, &values))
    });
    let found = significant(cases.collect(), CHANCE).filter_map(|case| {
        let machine = Machine::of(lives(case.observed()).into_iter().flatten().collect());
        let share = case.mean / case.cost_ns()?;
        let (ns_per_operation, p) = (machine::rounded(case.mean, machine.steps_ns()), case.p);
        let doubt = Doubt::WorkElsewhere { ns_per_operation, share, p };
        (share > REST && case.mean > machine.interrupts_ns()).then(|| case.finding(doubt))
    });
    found.collect()
}

/// One value per contender and life: by how much the rest of the machine used more than in the slices of the others,
/// nanoseconds per operation.
fn excess(field: &Field) -> Vec<Vec<f64>> {
    let all: Vec<Vec<Option<OfLife>>> = field.contenders.iter().map(lives).collect();
    let alone = Alone::of(all.iter().flatten().flatten());
    let per = |of: fn(&OfLife) -> f64, life: &OfLife| life.rest_ns(&alone) / of(life);
    let above = |who: usize, life: &OfLife, nth: usize, of: fn(&OfLife) -> f64| {
        let others = all.iter().enumerate().filter(|(other, _)| *other != who);
        let others = others.filter_map(|(_, lives)| Some(per(of, lives.get(nth)?.as_ref()?)));
        Some((per(of, life) - median(others.collect())?) * of(life))
    };
    let of_contender = |who: usize| {
        let of_life = |(nth, life): (usize, &Option<OfLife>)| {
            let life = life.as_ref()?;
            let by_count = above(who, life, nth, OfLife::count)?;
            Some(by_count.min(above(who, life, nth, OfLife::ns)?) / life.count())
        };
        all[who].iter().enumerate().filter_map(of_life).collect()
    };
    (0..all.len()).map(of_contender).collect()
}

/// Contenders that are cheaper than the baseline by the CPU of their processes, and more expensive by that of their
/// machine, or the other way round.
fn ranked_otherwise(asked: &Asked, field: &Field) -> Vec<Finding> {
    let Some(baseline) = field.of(&asked.baseline).map(lives) else { return Vec::new() };
    let each = field.contenders.iter().filter(|observed| observed.name != asked.baseline);
    let finding = |observed: &CellRounds| {
        let of_machine = machine::ratio(&lives(observed), &baseline)?;
        let own = field.compare(&observed.name, &asked.baseline)?.ratio();
        let differ =
            own.high < 1.0 && of_machine.low > 1.0 || own.low > 1.0 && of_machine.high < 1.0;
        let doubt = Doubt::MachineRanksOtherwise { ratio: own.mean, of_machine: of_machine.mean };
        differ.then(|| field.finding(observed, doubt))
    };
    each.filter_map(finding).collect()
}
