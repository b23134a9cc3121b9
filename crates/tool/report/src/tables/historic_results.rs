//! Historic results of others, with or without figures, beside the results measured here.

use crate::{
    numbers,
    table::{Note, visible},
};
use regatta_record::{Cell, Estimate, Figure, Kind, LoadShape, Summary};

/// Notes on historic results and their conditions. If one of them is only words, a second note has the
/// contenders in the order measured here.
pub fn then(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> Vec<Note> {
    let source = visible(summary.asked.then_source.as_deref().unwrap_or("another source"));
    let text = |c: &&Cell| {
        let then = summary.asked.then(&c.contender, load)?;
        let name = visible(&with_stand_in(summary, &c.contender));
        let note = then.note.as_deref().map(visible).unwrap_or_default();
        Some(match &then.figure {
            Some(figure) if note.is_empty() => format!("{name} {}", visible(figure)),
            Some(figure) => format!("{name} {} ({note})", visible(figure)),
            None => format!("{name}: {note}"),
        })
    };
    let texts: Vec<String> = cells.iter().filter_map(text).collect();
    if texts.is_empty() {
        return Vec::new();
    }
    let words = cells.iter().any(|c| c.then_in_words.is_some());
    let then = Note {
        names: texts.join(if words { "; " } else { ", " }),
        kind: "then",
        because: format!(
            "from {source}, measured on other machines long ago; do not compare with the figures \
             measured here"
        ),
        bad: false,
    };
    let now = words.then(|| now(summary, load, cells)).flatten();
    [Some(then)].into_iter().chain([now]).flatten().collect()
}

/// The contenders with a historic result, fastest first as measured here.
fn now(summary: &Summary, load: &LoadShape, cells: &[&Cell]) -> Option<Note> {
    let figure = |c: &Cell| if load.requests.is_some() { c.ms_per_request } else { c.rate_per_s };
    let named = |c: &Cell| summary.asked.then(&c.contender, load).is_some();
    let valid = |c: &&&Cell| named(c) && !c.verdict.voids(Figure::Rate);
    let mut all: Vec<(&Cell, Estimate)> =
        cells.iter().filter(valid).filter_map(|c| Some((*c, figure(c)?))).collect();
    all.sort_by(|(a, _), (b, _)| {
        let rate = |c: &Cell| c.rate_per_s.map_or(0.0, |e| e.mean);
        rate(b).total_cmp(&rate(a))
    });
    let unit = if load.requests.is_some() { "ms per request" } else { "requests per second" };
    let text = |(c, e): &(&Cell, Estimate)| {
        let name = visible(&with_stand_in(summary, &c.contender));
        let bound = match (c.verdict.is(Kind::CoBound), load.requests) {
            (false, _) => "",
            (true, None) => "≥ ",
            (true, Some(_)) => "≤ ",
        };
        format!("{name} {bound}{}", numbers::short(e.mean))
    };
    (!all.is_empty()).then(|| Note {
        names: all.iter().map(text).collect::<Vec<_>>().join(", "),
        kind: "now",
        because: format!("{unit}, fastest first, as measured here"),
        bad: false,
    })
}

/// The name of a contender, and the system for which it stands in.
fn with_stand_in(summary: &Summary, contender: &str) -> String {
    let entry = summary.asked.entries.iter().find(|e| e.name == contender);
    match entry.and_then(|entry| entry.stand_in_for.as_ref()) {
        Some(system) => format!("{contender} (a stand-in for {system})"),
        None => contender.to_owned(),
    }
}
