//! Remarks on single cells that may mislead. Cells with the same remark share one sentence.

use crate::{field::Field, little, observed::Observed, verdict::partly_misshapen};
use regatta_record::{Asked, WarmUpClass, alike};

/// Share of a cost from which its possible absence matters.
const UNSEEN: f64 = 0.01;

/// Reports for each cell: errors beside correct replies, rounds that were not observed, unreadable
/// histograms.
pub fn errors_and_gaps(fields: &[Field]) -> Vec<String> {
    let errors = by_cell(fields, |_, o| {
        let kinds = o.errors.by_kind().into_iter().filter(|(_, n)| *n > 0);
        let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {kind}")).collect();
        (!kinds.is_empty()).then(|| {
            format!(
                "had errors ({}) beside {} correct replies; no latency includes them: see \
                 `regatta doctor` for limits of this machine",
                kinds.join(", "),
                o.requests
            )
        })
    });
    let unobserved = by_cell(fields, |_, o| {
        (o.unobserved > 0 && o.unobserved < o.finished).then(|| {
            format!(
                "was observed in only {} of {} starts; the cost is from these",
                o.finished - o.unobserved,
                o.finished
            )
        })
    });
    let unreadable = by_cell(fields, |_, o| {
        let why = o.unreadable.as_ref()?;
        Some(format!("has no latency: a histogram could not be read ({why}); start it again"))
    });
    [errors, unobserved, unreadable].concat()
}

/// Reports cost that may be missing, because processes exited inside the window.
pub fn unseen(asked: &Asked, fields: &[Field]) -> Vec<String> {
    let unbounded = by_cell(fields, |_, o| {
        let was_running = asked.entries.iter().any(|e| e.name == o.name && e.running.is_some());
        let remedy = match was_running {
            true => "a server that the race starts itself gets a control group",
            false => "`regatta doctor` explains how to get a control group",
        };
        (o.unbounded > 0).then(|| {
            format!(
                "had no control group in {} of {} starts, and short-lived processes may have been \
                 missed: its cost is a lower bound; {remedy}",
                o.unbounded, o.finished
            )
        })
    });
    let bounded = by_cell(fields, |_, o| {
        let share = o.unseen.filter(|share| *share > UNSEEN)?;
        Some(format!(
            "may have used {:.1}% more CPU than was measured, in processes that exited inside the \
             window; use longer windows (--window)",
            share * 100.0
        ))
    });
    [unbounded, bounded].concat()
}

/// Reports arrivals that had the requested shape in most rounds, but not in all.
pub fn arrivals(fields: &[Field]) -> Vec<String> {
    by_cell(fields, |field, o| {
        let open = o.latencies.open_loop.as_ref()?;
        let what = partly_misshapen(field.load.drive.arrivals()?, open, o.finished)?;
        Some(format!(": {what}; see `arrivals` in rounds.jsonl"))
    })
}

/// Reports loads whose members should join and leave and hardly did: such a load is lighter than
/// declared.
pub fn passing(fields: &[Field]) -> Vec<String> {
    by_cell(fields, |field, o| {
        // A member stays for about a second. This leaves out the warm-up, which `passed` includes.
        let expected = f64::from(field.load.passing) * o.window_s;
        (o.passed as f64 * 4.0 < expected).then(|| {
            format!(
                "had {} members that joined and left, where about {expected:.0} were expected: it \
                 admitted or dismissed them slowly, so its load was lighter than declared",
                o.passed
            )
        })
    })
}

/// Builds one sentence per remark, after the names of all cells that it applies to.
fn by_cell(fields: &[Field], of: impl Fn(&Field, &Observed) -> Option<String>) -> Vec<String> {
    let cells = fields.iter().flat_map(|field| field.contenders.iter().map(move |o| (field, o)));
    let remarks = cells
        .filter_map(|(field, o)| Some((format!("{} at {}", o.name, field.load), of(field, o)?)));
    let sentence = |(cells, text): (Vec<String>, String)| {
        let gap = if text.starts_with(':') { "" } else { " " };
        format!("{}{gap}{text}", cells.join(" and "))
    };
    alike(remarks).into_iter().map(sentence).collect()
}

/// Reports contenders whose cost never settled, and those whose warm-ups were too short. In duels, a cost
/// that changes within a life is compared with those of the others instead: the machine changes all.
pub fn warm_ups(fields: &[Field]) -> Vec<String> {
    let restless = by_cell(fields, |field, o| {
        if field.duel.is_some() {
            return None;
        }
        let seen = o.settling.filter(|seen| seen.class == WarmUpClass::NeverSettles)?;
        let s = seen.observed_ns as f64 / 1e9;
        Some(format!(
            "never settled: the cost still changed when the observation ended after {s:.0} s, so the \
             figures are those of a server loaded for that long; another length gives other figures \
             (--settle)"
        ))
    });
    let short = by_cell(fields, |_, o| {
        (o.cut_short > 0).then(|| {
            format!(
                "had a warm-up shorter than it needs in {} of {} starts, because it was slower \
                 then than when it was observed",
                o.cut_short, o.finished
            )
        })
    });
    [restless, short].concat()
}

/// Reports figures that contradict each other by Little's law, all cells of a load in one sentence.
pub fn little(field: &Field) -> Option<String> {
    let off = field.contenders.iter().filter_map(|o| {
        let residual = little::residual(&field.load, o).filter(|r| r.abs() >= little::LITTLE)?;
        Some(format!("{} ({:+.0}%)", o.name, residual * 100.0))
    });
    let off: Vec<String> = off.collect();
    (!off.is_empty() && field.shared.is_empty()).then(|| {
        format!(
            "at {}: the number of requests in flight differs from rate × mean latency (Little's law) \
             for {}. Above 0%, connections were idle, or the load was late to read and send again; \
             below 0%, the latencies are longer than the rate permits",
            field.load,
            off.join(", ")
        )
    })
}
