//! What is said under a table: why each verdict, and the result.

use crate::{
    numbers,
    view::{Note, Tone, verdict_tone, visible},
};
use regatta_record::{Cell, Kind, Relation, Summary};

/// Why, for every verdict that voids something; one line for each kind that only limits the rate.
pub fn notes(cells: &[&Cell]) -> Vec<Note> {
    let mut notes: Vec<Note> = cells
        .iter()
        .filter(|c| !c.verdict.void.is_empty())
        .map(|c| Note {
            names: visible(&c.contender),
            kind: c.verdict.kind.name(),
            because: visible(&c.verdict.because),
            bad: verdict_tone(c) == Tone::Bad,
        })
        .collect();
    for (kind, because) in [
        (Kind::CoBound, "server and load were both busy, so the rate is a lower bound (≥)"),
        (Kind::Idle, "neither server nor load was busy, so the rate says nothing of the limit"),
    ] {
        let of_kind = cells.iter().filter(|c| c.verdict.kind == kind && c.verdict.void.is_empty());
        let names: Vec<String> = of_kind.map(|c| visible(&c.contender)).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            notes.push(Note { names, kind: kind.name(), because: because.to_owned(), bad: false });
        }
    }
    notes
}

/// The result in one sentence: who is cheapest, who is tied with the baseline, who is dearest.
pub fn result(summary: &Summary, contenders: &[&Cell]) -> String {
    let ranked: Vec<&&Cell> = contenders.iter().filter(|c| c.band.is_some()).collect();
    let Some(cheapest) = ranked.first() else {
        return "no contender has a cost that may be believed here".to_owned();
    };
    let baseline = visible(&summary.asked.baseline);
    let against = |c: &Cell| match (c.relation, c.ratio_to_baseline) {
        (Some(Relation::Cheaper | Relation::Dearer), Some(e)) => Some(numbers::ratio(&e)),
        _ => None,
    };
    let names = |wanted: &dyn Fn(&Cell) -> bool| -> String {
        let names: Vec<_> =
            ranked.iter().filter(|c| wanted(c)).map(|c| visible(&c.contender)).collect();
        names.join(", ")
    };
    let mut parts = Vec::new();

    let cost =
        against(cheapest).map_or_else(String::new, |r| format!(" at {r} of {baseline}'s cost"));
    parts.push(format!("cheapest: {}{cost}", visible(&cheapest.contender)));
    let is_base = cheapest.contender == summary.asked.baseline;
    let tied = names(&|c| c.relation == Some(Relation::Tied));
    if !tied.is_empty() {
        let subject = if is_base { String::new() } else { format!("{baseline} is ") };
        parts.push(format!("{subject}tied with {tied}"));
    }
    let perhaps = names(&|c| {
        c.contender != cheapest.contender
            && c.band.is_some_and(|b| b.best == 1)
            && !(is_base && c.relation == Some(Relation::Tied))
    });
    if !perhaps.is_empty() {
        parts.push(format!("perhaps as cheap: {perhaps}"));
    }
    if let Some((dearest, ratio)) = ranked.last().and_then(|c| Some((c, against(c)?)))
        && dearest.contender != cheapest.contender
        && dearest.relation == Some(Relation::Dearer)
    {
        parts.push(format!("{} costs {ratio} as much as {baseline}", visible(&dearest.contender)));
    }
    parts.join("; ")
}
