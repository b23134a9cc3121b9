//! What might mislead about single cells.

use crate::{field::Field, little, verdict::partly_misshapen};

/// Of each cell: errors beside right answers, rounds that were not observed, unreadable files.
pub fn errors_and_gaps(field: &Field) -> Vec<String> {
    let mut doubts = Vec::new();
    for o in &field.contenders {
        let cell = format!("{} at {}", o.name, field.load);
        if o.errors.total() > 0 {
            let kinds = o.errors.by_kind().into_iter().filter(|(_, n)| *n > 0);
            let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {kind}")).collect();
            doubts.push(format!(
                "{cell} met errors ({}) beside {} right answers; they are in no latency: see \
                 `regatta doctor` for limits of this machine",
                kinds.join(", "),
                o.requests
            ));
        }
        if o.unobserved > 0 && o.unobserved < o.finished {
            doubts.push(format!(
                "{cell} was observed in {} of {} rounds only; the cost is from those",
                o.finished - o.unobserved,
                o.finished
            ));
        }
        if let Some(why) = &o.unreadable {
            doubts.push(format!(
                "{cell} has no latency: a histogram could not be read ({why}); run that round again"
            ));
        }
    }
    doubts
}

/// Arrivals that kept their shape in most rounds, but not in all.
pub fn arrivals(field: &Field) -> Vec<String> {
    let told = field.contenders.iter().filter_map(|o| {
        let open = o.latencies.open_loop.as_ref()?;
        let what = partly_misshapen(field.load.drive.arrivals()?, open, o.finished)?;
        Some(format!("{} at {}: {what}; see `arrivals` in rounds.jsonl", o.name, field.load))
    });
    told.collect()
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
