//! Finding one's way in the text of a report.

/// The lines of one table and what is said under it.
pub fn table<'a>(text: &'a str, title: &str) -> Vec<&'a str> {
    let from = text.lines().skip_while(|line| *line != title);
    let lines: Vec<&str> = from.take_while(|line| !line.is_empty()).collect();
    assert!(!lines.is_empty(), "no table {title:?}:\n{text}");
    lines
}

/// Without the gaps between columns.
pub fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The row of a contender.
pub fn row<'a>(table: &[&'a str], name: &str) -> &'a str {
    table.iter().find(|line| line.starts_with(name)).unwrap()
}
