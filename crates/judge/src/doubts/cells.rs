//! What might mislead about single cells. A remark on several cells is one sentence with their names.

use crate::{field::Field, little, observed::Observed, verdict::partly_misshapen};
use regatta_record::{WarmUpClass, alike};

/// Share of a cost from which on it matters that it may be missing.
const UNSEEN: f64 = 0.01;

/// Of each cell: errors beside right answers, rounds that were not observed, unreadable files.
pub fn errors_and_gaps(fields: &[Field]) -> Vec<String> {
    let errors = told(fields, |_, o| {
        let kinds = o.errors.by_kind().into_iter().filter(|(_, n)| *n > 0);
        let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {kind}")).collect();
        (!kinds.is_empty()).then(|| {
            format!(
                "met errors ({}) beside {} right answers; they are in no latency: see \
                 `regatta doctor` for limits of this machine",
                kinds.join(", "),
                o.requests
            )
        })
    });
    let unobserved = told(fields, |_, o| {
        (o.unobserved > 0 && o.unobserved < o.finished).then(|| {
            format!(
                "was observed in {} of {} rounds only; the cost is from those",
                o.finished - o.unobserved,
                o.finished
            )
        })
    });
    let unreadable = told(fields, |_, o| {
        let why = o.unreadable.as_ref()?;
        Some(format!("has no latency: a histogram could not be read ({why}); run that round again"))
    });
    [errors, unobserved, unreadable].concat()
}

/// Cost that may be missing, since processes ended that nobody waited for.
pub fn unseen(fields: &[Field]) -> Vec<String> {
    let unbounded = told(fields, |_, o| {
        (o.unbounded > 0).then(|| {
            format!(
                "had no control group in {} of {} rounds, and processes may have come and gone unseen: \
                 its cost is a lower bound; `regatta doctor` says how to get a control group",
                o.unbounded, o.finished
            )
        })
    });
    let bounded = told(fields, |_, o| {
        let share = o.unseen.filter(|share| *share > UNSEEN)?;
        Some(format!(
            "may have used {:.1}% more CPU than was seen, in processes that ended inside the window; \
             take longer windows (--window)",
            share * 100.0
        ))
    });
    [unbounded, bounded].concat()
}

/// Arrivals that kept their shape in most rounds, but not in all.
pub fn arrivals(fields: &[Field]) -> Vec<String> {
    told(fields, |field, o| {
        let open = o.latencies.open_loop.as_ref()?;
        let what = partly_misshapen(field.load.drive.arrivals()?, open, o.finished)?;
        Some(format!(": {what}; see `arrivals` in rounds.jsonl"))
    })
}

/// Loads whose members were to come and go and hardly did: such a load is lighter than it says.
pub fn passing(fields: &[Field]) -> Vec<String> {
    told(fields, |field, o| {
        // A member stays for about a second, and the warm-up is not counted here.
        let expected = f64::from(field.load.passing) * o.window_s;
        (o.passed as f64 * 4.0 < expected).then(|| {
            format!(
                "had {} members that came and went where about {expected:.0} were to: it admitted or \
                 dismissed them slowly, so its load was lighter than it says",
                o.passed
            )
        })
    })
}

/// What is said of cells, each sentence after the names of all cells that it is said of.
fn told(fields: &[Field], of: impl Fn(&Field, &Observed) -> Option<String>) -> Vec<String> {
    let cells = fields.iter().flat_map(|field| field.contenders.iter().map(move |o| (field, o)));
    let remarks = cells
        .filter_map(|(field, o)| Some((format!("{} at {}", o.name, field.load), of(field, o)?)));
    let sentence = |(cells, text): (Vec<String>, String)| {
        let gap = if text.starts_with(':') { "" } else { " " };
        format!("{}{gap}{text}", cells.join(" and "))
    };
    alike(remarks).into_iter().map(sentence).collect()
}

/// Contenders whose cost may not be what it becomes.
pub fn warm_ups(fields: &[Field]) -> Vec<String> {
    let restless = told(fields, |_, o| {
        let seen = o.settling.filter(|seen| seen.class == WarmUpClass::NeverSettles)?;
        let s = seen.observed_ns as f64 / 1e9;
        Some(format!(
            "never settled: the cost still changed when the observation ended after {s:.0} s, so its \
             figures are those of a server that was loaded for that long, and another length gives others \
             (--settle)"
        ))
    });
    let short = told(fields, |_, o| {
        (o.cut_short > 0).then(|| {
            format!(
                "was warmed up for less than it was seen to need in {} of {} rounds, since it was \
                 slower in these than when it was observed",
                o.cut_short, o.finished
            )
        })
    });
    [restless, short].concat()
}

/// Figures that do not agree with each other by Little's law, all of a load in one sentence.
pub fn little(field: &Field) -> Option<String> {
    let off = field.contenders.iter().filter_map(|o| {
        let residual = little::residual(&field.load, o).filter(|r| r.abs() >= little::LITTLE)?;
        Some(format!("{} ({:+.0}%)", o.name, residual * 100.0))
    });
    let off: Vec<String> = off.collect();
    (!off.is_empty() && field.shared.is_empty()).then(|| {
        format!(
            "at {} connections × outstanding requests are not rate × mean latency (Little's law) \
             for {}: above 0 connections idled, or the load was late to read and send again; below \
             0 the latencies are longer than the rate permits",
            field.load,
            off.join(", ")
        )
    })
}
