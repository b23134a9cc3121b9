//! Markdown for a pull request: the same tables, with all columns.

use crate::{
    table::{Column, Table, Tone},
    texts::{answer::Answer, legend::Legend},
    view::{View, view},
};
use regatta_record::Summary;
use std::fmt::Write;

/// The race as GitHub's Markdown.
pub fn markdown(summary: &Summary) -> String {
    lay_out(&view(summary))
}

/// Lays out a view as Markdown.
pub fn lay_out(view: &View) -> String {
    let mut out = String::new();
    let (first, rest) = view.heading.split_first().expect("a heading has lines");
    push(&mut out, &format!("## {}\n", escaped(first)));
    if let Some(overall) = &view.overall {
        push(&mut out, &format!("**{}**\n", escaped(overall)));
    }
    match &view.answers[..] {
        [only] => push(&mut out, &format!("**{}**\n", escaped(&only.sentence))),
        answers => {
            for Answer { load, sentence } in answers {
                push(&mut out, &format!("- {}: **{}**", escaped(load), escaped(sentence)));
            }
            push(&mut out, "");
        }
    }
    for line in rest {
        push(&mut out, &format!("{}  ", escaped(line)));
    }
    let View { gate, overview, scaling, contenders, .. } = view;
    let first = gate.iter().chain(overview).chain(view.raced()).chain(view.details());
    for table in first.chain(scaling).chain(contenders) {
        push(&mut out, &format!("\n### {}\n", escaped(&table.title)));
        if !table.result.is_empty() {
            push(&mut out, &format!("**{}**\n", escaped(&table.result)));
        }
        rows(&mut out, table);
        if !table.notes.is_empty() {
            push(&mut out, "");
        }
        let is_of_load = view.tables.iter().any(|other| std::ptr::eq(other, table));
        let legend = if is_of_load { Legend::of(table).meanings() } else { Vec::new() };
        if !legend.is_empty() {
            push(&mut out, &format!("\n{}\n", escaped(&legend.join(" · "))));
        }
        for note in &table.notes {
            let (names, because) = (escaped(&note.names), escaped(&note.because));
            push(&mut out, &format!("- {} · {names}: {because}", note.kind));
        }
    }
    for sweep in &view.sweeps {
        push(&mut out, &format!("\n### {}\n", escaped(&sweep.title)));
        for found in &sweep.found {
            let (names, text) = (escaped(&found.names), escaped(&found.text));
            push(&mut out, &format!("- **{names}**: {text}"));
        }
        for doubt in &sweep.doubts {
            let (names, text) = (escaped(&doubt.names), escaped(&doubt.text));
            push(&mut out, &format!("- but {names}: {text}"));
        }
        push(&mut out, &format!("\n{}", escaped(&sweep.key)));
    }
    for (title, lines) in [
        (
            "Skipped",
            view.skipped.iter().map(|(n, w)| format!("{}: {}", escaped(n), escaped(w))).collect(),
        ),
        ("Doubts", view.doubts.iter().map(|d| escaped(d)).collect::<Vec<_>>()),
    ] {
        if !lines.is_empty() {
            push(&mut out, &format!("\n### {title}\n"));
        }
        lines.iter().for_each(|line| push(&mut out, &format!("- {line}")));
    }
    out
}

fn push(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("a string takes all");
}

fn rows(out: &mut String, table: &Table) {
    let title = |c: &Column| match c.group.as_str() {
        "" => escaped(&c.title),
        group => escaped(&format!("{group}: {}", c.title)),
    };
    let titles: Vec<String> = table.columns.iter().map(title).collect();
    push(out, &format!("| {} |", titles.join(" | ")));
    let rules: Vec<&str> =
        table.columns.iter().map(|c| if c.right { "--:" } else { ":--" }).collect();
    push(out, &format!("| {} |", rules.join(" | ")));
    for row in &table.rows {
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|cell| match cell.tone {
                Tone::Bad => format!("**{}**", escaped(&cell.text)),
                _ if row.reference && !cell.text.is_empty() => format!("*{}*", escaped(&cell.text)),
                _ => escaped(&cell.text),
            })
            .collect();
        push(out, &format!("| {} |", cells.join(" | ")));
    }
}

/// Escapes the characters that start markup in Markdown or HTML. Also escapes `@` and `#`, so that a
/// contender can neither mention people nor refer to issues.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn escapes_all_markup() {
        assert_eq!(
            super::escaped("<b>|`x`|[a](b) @me #1 *y*"),
            r"&lt;b&gt;\|\`x\`\|\[a\](b) &#64;me &#35;1 \*y\*"
        );
    }
}
