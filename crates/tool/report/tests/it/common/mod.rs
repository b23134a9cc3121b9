//! Helpers that find parts of the text of a report.

use regatta_record::Summary;

/// The lines of one table, including the notes under it.
pub fn table<'a>(text: &'a str, title: &str) -> Vec<&'a str> {
    let from = text.lines().skip_while(|line| *line != title);
    let lines: Vec<&str> = from.take_while(|line| !line.is_empty()).collect();
    assert!(!lines.is_empty(), "no table {title:?}:\n{text}");
    lines
}

/// The summary with only one load, whose text starts with `load`. With many loads, a terminal shows an
/// overview instead of a table for each.
#[allow(dead_code)]
pub fn alone(summary: &Summary, load: &str) -> Summary {
    let mut alone = summary.clone();
    alone.asked.loads.retain(|one| one.to_string() == load);
    assert_eq!(alone.asked.loads.len(), 1, "{load}");
    let only = alone.asked.loads[0];
    alone.cells.retain(|cell| cell.load == only);
    alone
}

/// The titles of a table, with the units in the line below: `contender cost rate / µs/req k/s`.
#[allow(dead_code)]
pub fn titles(table: &[&str]) -> String {
    format!("{} / {}", words(table[1]), words(table[2]))
}

/// A line with single spaces between words.
pub fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The row of a contender.
pub fn row<'a>(table: &[&'a str], name: &str) -> &'a str {
    table.iter().find(|line| line.starts_with(name)).unwrap()
}

/// The values of a column of CSV (RFC 4180), in order of the lines.
#[allow(dead_code)]
pub fn column(csv: &str, name: &str) -> Vec<String> {
    let mut lines = csv.lines().map(fields);
    let titles = lines.next().expect("titles");
    let at = titles.iter().position(|title| title == name);
    let at = at.unwrap_or_else(|| panic!("no column {name:?}: {titles:?}"));
    lines.map(|mut fields| fields.swap_remove(at)).collect()
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("a field").push(c),
        }
    }
    fields
}
