//! Findings on single cells that may mislead, and void no figure.

use crate::{cell::observed::CellRounds, compared::field::Field};
use regatta_record::{Asked, Doubt, Finding, WarmUpClass};

/// Share of a cost from which its possible absence matters.
const UNSEEN: f64 = 0.01;

type Check<'c> = &'c dyn Fn(&Field, &CellRounds) -> Option<Doubt>;

/// The findings on all cells, those of a kind one after the other.
pub fn findings(asked: &Asked, fields: &[Field]) -> Vec<Finding> {
    let was_running =
        |name: &str| asked.entries.iter().any(|one| one.name == name && one.running.is_some());
    let unbounded = |_: &Field, o: &CellRounds| {
        let (starts, of) = (o.unbounded, o.finished);
        let was_running = was_running(&o.name);
        (starts > 0).then_some(Doubt::NoControlGroup { starts, of, was_running })
    };
    let checks: [Check<'_>; 9] = [
        &unbounded,
        &unseen_cpu,
        &errors,
        &partly_observed,
        &no_latency,
        &other_arrivals,
        &few_passed,
        &never_settled,
        &short_warm_up,
    ];
    let of_all = |check: &Check<'_>| {
        let each = |field: &Field| field.each(|observed| check(field, observed));
        fields.iter().flat_map(each).collect::<Vec<_>>()
    };
    checks.iter().flat_map(of_all).collect()
}

fn unseen_cpu(_: &Field, o: &CellRounds) -> Option<Doubt> {
    let share = o.unseen.filter(|share| *share > UNSEEN)?;
    Some(Doubt::UnseenCpu { share })
}

fn errors(_: &Field, o: &CellRounds) -> Option<Doubt> {
    let any = o.errors.by_kind().into_iter().any(|(_, n)| n > 0);
    any.then_some(Doubt::Errors { errors: o.errors, replies: o.requests })
}

fn partly_observed(_: &Field, o: &CellRounds) -> Option<Doubt> {
    let starts = o.finished.checked_sub(o.unobserved)?;
    (o.unobserved > 0 && starts > 0).then_some(Doubt::PartlyObserved { starts, of: o.finished })
}

fn no_latency(_: &Field, o: &CellRounds) -> Option<Doubt> {
    Some(Doubt::NoLatency { why: o.unreadable.clone()? })
}

/// Arrivals that had the requested shape in most rounds, but not in all. Where they had it in fewer, the
/// verdict says so.
fn other_arrivals(field: &Field, o: &CellRounds) -> Option<Doubt> {
    let starts = o.latencies.open_loop.as_ref()?.misshapen;
    let (arrivals, of) = (field.load.drive.arrivals()?, o.finished);
    (starts > 0 && starts * 2 <= of).then_some(Doubt::OtherArrivals { arrivals, starts, of })
}

/// Loads whose members should join and leave and hardly did: such a load is lighter than declared.
fn few_passed(field: &Field, o: &CellRounds) -> Option<Doubt> {
    // A member stays for about a second. This leaves out the warm-up, which `passed` includes.
    let expected = f64::from(field.load.passing) * o.window_s;
    let members = o.passed;
    (members as f64 * 4.0 < expected).then_some(Doubt::FewPassed { members, expected })
}

/// In duels, a cost that changes within a life is compared with those of the others instead: the machine
/// changes all.
fn never_settled(field: &Field, o: &CellRounds) -> Option<Doubt> {
    let seen = o.settling.filter(|seen| seen.class == WarmUpClass::NeverSettles)?;
    let seconds = seen.observed_ns as f64 / 1e9;
    field.duel.is_none().then_some(Doubt::NeverSettled { seconds })
}

fn short_warm_up(_: &Field, o: &CellRounds) -> Option<Doubt> {
    let (starts, of) = (o.cut_short, o.finished);
    (starts > 0).then_some(Doubt::ShortWarmUp { starts, of })
}
