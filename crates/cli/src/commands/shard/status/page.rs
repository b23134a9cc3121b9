//! A page with metrics in the text format of Prometheus.

/// The value of a metric with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    labels: Vec<(String, String)>,
    pub value: f64,
}

impl Sample {
    /// The value of a label; empty if it has no such label.
    pub fn label(&self, name: &str) -> &str {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map_or("", |(_, value)| value)
    }
}

/// Reads the samples of a page. Other lines are skipped.
pub fn samples(page: &str) -> Vec<Sample> {
    page.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        while !inside.starts_with('}') {
            let (label, after) = inside.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            inside = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &inside[1..];
    }
    // A time may follow the value.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Reads a value up to its closing quote. Returns it, and what follows the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            'n' if is_escaped => value.push('\n'),
            _ if is_escaped => value.push(c),
            '\\' => {}
            '"' => return Some((value, &text[at + 1..])),
            _ => value.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_service::prometheus::{Exposition, label, with_label};

    #[test]
    fn what_is_written_is_read() {
        let value = "a \\ \"b\"\n{,} n=\"1\"";
        let labels = with_label(&label("one", value), "two", "");
        let mut all = Exposition::new("x");
        all.family("n", "gauge", "How many.", &[("", 7)]);
        all.family("m", "counter", "More.", &[(labels, 1)]);
        let read = samples(&all.into_text());
        let names: Vec<_> = read.iter().map(|one| (&one.name[..], one.value)).collect();
        assert_eq!(names, [("x_n", 7.0), ("x_m", 1.0)]);
        assert_eq!([read[1].label("one"), read[1].label("two")], [value, ""]);
        assert_eq!(read[0].label("one"), "");
    }

    #[test]
    fn other_lines_are_skipped() {
        for (line, value) in [
            ("x 1 1700000000", Some(1.0)),
            ("x{a=\"b\",} 2.5e3", Some(2500.0)),
            ("x +Inf", Some(f64::INFINITY)),
            ("", None),
            ("x", None),
            ("x{a=\"b\"", None),
            ("x{a=\"b} 1", None),
            ("x{a} 1", None),
            ("# HELP x 1", None),
            ("x{} 3", Some(3.0)),
            ("x one", None),
        ] {
            assert_eq!(samples(line).first().map(|sample| sample.value), value, "{line}");
        }
    }
}
