//! A gate as a table: for a race against its baseline, or for two results.

use crate::{
    numbers,
    table::{Column, Note, Row, Table, Text, Tone, visible},
    tables::{
        columns::{none, plain},
        why::together,
    },
};
use regatta_record::{Gate, GateLine, Judgement};

/// The table of a gate, with its verdict in one sentence.
pub fn table(gate: &Gate) -> Table {
    let title = match gate.fail_over {
        Some(limit) => format!("gate · cost at most {} above {}", percent(limit), gate.old),
        None => format!("cost relative to {}", gate.old),
    };
    let row = |line: &GateLine| {
        let cells = vec![
            plain(visible(&line.contender)),
            plain(line.load.to_string()),
            ratio(line),
            word(line, gate.fail_over.is_some()),
        ];
        Row::plain(false, cells)
    };
    let mut notes: Vec<Note> = Vec::new();
    for (judgement, kind) in [
        (Judgement::Worse, "worse"),
        (Judgement::Undecided, "not decided"),
        (Judgement::Unknown, "unknown"),
    ] {
        let lines = gate.lines.iter().filter(|line| line.judgement == judgement);
        notes.extend(together(kind, lines.map(remark), judgement == Judgement::Worse));
    }
    notes.push(Note {
        names: "ratio".to_owned(),
        kind: "method",
        because: visible(&gate.method),
        bad: false,
    });
    let columns = vec![
        Column::left("contender"),
        Column::left("load").rank(2),
        Column::right("ratio", 1).titled("new/old"),
        Column::left("judgement"),
    ];
    let table = Table::plain(visible(&title), columns, gate.lines.iter().map(row).collect());
    Table { result: visible(&verdict(gate)), notes, ..table }
}

/// The cell and the reason of its judgement.
fn remark(line: &GateLine) -> (String, String) {
    (visible(&format!("{} at {}", line.contender, line.load)), visible(&line.because))
}

/// The ratio; in parentheses if it must not be trusted.
fn ratio(line: &GateLine) -> Text {
    match (&line.ratio, line.judgement) {
        (None, _) => none(),
        (Some(e), Judgement::Unknown) => {
            Text { text: format!("({})", numbers::ratio(e)), tone: Tone::Void }
        }
        (Some(e), _) => plain(numbers::ratio(e)),
    }
}

/// The judgement in a word, with a mark if there is a limit.
fn word(line: &GateLine, limited: bool) -> Text {
    let costlier = line.ratio.is_some_and(|e| e.mean > 1.0);
    let (mark, word, tone) = match line.judgement {
        Judgement::Worse => ("✘ ", "worse", Tone::Bad),
        Judgement::Differs if costlier => ("✔ ", "costlier", Tone::Warn),
        Judgement::Differs => ("✔ ", "cheaper", Tone::Good),
        Judgement::Same => ("✔ ", "no difference", Tone::Plain),
        Judgement::Undecided => ("? ", "not decided", Tone::Warn),
        Judgement::Unknown => ("✘ ", "unknown", Tone::Bad),
    };
    Text { text: format!("{}{word}", if limited { mark } else { "" }), tone }
}

/// The verdict in one sentence.
fn verdict(gate: &Gate) -> String {
    let of = |judgement| {
        let lines = gate.lines.iter().filter(move |line| line.judgement == judgement);
        lines.map(|l| format!("{} at {}", l.contender, l.load)).collect::<Vec<_>>().join(", ")
    };
    let (worse, unknown, differs) =
        (of(Judgement::Worse), of(Judgement::Unknown), of(Judgement::Differs));
    let Some(limit) = gate.fail_over.map(percent) else {
        return match differs.as_str() {
            "" => "no significant difference was found".to_owned(),
            differs => format!("significantly different: {differs}"),
        };
    };
    let undecided = of(Judgement::Undecided);
    match (worse.as_str(), unknown.as_str()) {
        ("", "") if gate.lines.is_empty() => "NOT PASSED: there was nothing to judge".to_owned(),
        ("", "") if undecided.is_empty() => {
            format!("passed: every cost is within {limit}, with 95% confidence")
        }
        ("", "") => {
            format!(
                "NOT DECIDED: the rounds do not show whether these are within {limit}: {undecided}"
            )
        }
        ("", unknown) => format!("NOT PASSED: {unknown} could not be judged"),
        (worse, "") => format!("FAILED: significantly above the limit of {limit}: {worse}"),
        (worse, unknown) => format!(
            "FAILED: significantly above the limit of {limit}: {worse}; {unknown} could not be judged"
        ),
    }
}

/// A limit as it was given on the command line.
fn percent(fraction: f64) -> String {
    format!("{}%", (fraction * 1e4).round() / 100.0)
}
