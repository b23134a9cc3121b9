//! Contenders that leave work behind which none of their processes does.

use crate::{
    cell::observed::CellRounds,
    compared::field::Field,
    statistics::{fisher_exact, holm, median},
};
use regatta_record::{Doubt, Finding};

/// Significance level, after Holm's correction: the chance that any honest contender of a race is
/// accused.
const CHANCE: f64 = 0.01;
/// In seconds. The kernel's own work after a large process exits takes less.
const LONG: f64 = 0.25;

/// A contender at a load: its rounds with and without work left, those of the others, and the p-value.
type Case<'f> = (&'f Field, &'f CellRounds, (usize, usize), (usize, usize), f64);

/// Reports contenders after which the CPUs were busy more often than after the others, by Fisher's
/// exact test with Holm's correction over all contenders of all loads.
pub fn left_work(fields: &[Field]) -> Vec<Finding> {
    let all = fields.iter().flat_map(|field| {
        let of = |busy: &[f64]| (busy.iter().filter(|s| **s >= LONG).count(), busy.len());
        let each: Vec<(usize, usize)> =
            field.contenders.iter().map(|o| of(&o.busy_after_s)).collect();
        let sum = each.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        field.contenders.iter().zip(each).map(move |(o, own)| {
            let others = (sum.0 - own.0, sum.1 - own.1);
            (field, o, own, others, fisher_exact(own, others).unwrap_or(1.0))
        })
    });
    let all: Vec<Case<'_>> = all.collect();
    let p_values: Vec<f64> = all.iter().map(|(.., p)| *p).collect();
    let significant = all.iter().zip(holm(&p_values, CHANCE)).filter(|(_, yes)| *yes);
    let finding = |((field, o, own, others, p), _): (&Case<'_>, bool)| {
        let long = o.busy_after_s.iter().copied().filter(|s| *s >= LONG).collect();
        let ((rounds, of), (others, of_others)) = (*own, *others);
        let seconds = median(long)?;
        let doubt = Doubt::WorkLeft { rounds, of, others, of_others, seconds, p: *p };
        Some(field.finding(o, doubt))
    };
    significant.filter_map(finding).collect()
}
