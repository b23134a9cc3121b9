//! Metrics for Prometheus, in its text format 0.0.4 (prometheus.io, "Exposition formats"), and pages with them.

use crate::{CallOutcome, Never, http};
use regatta_proto::http1::{Date, Reply, Status, Terms};

/// Families of metrics whose names begin alike.
#[derive(Debug)]
pub struct Exposition {
    prefix: &'static str,
    text: String,
}

impl Exposition {
    /// Creates an empty text. The name of each family gets this prefix, e.g. `regatta_hub`.
    pub fn new(prefix: &'static str) -> Self {
        Exposition { prefix, text: String::new() }
    }

    /// Appends a family. `kind`: `gauge` or `counter`; `samples`: labels as [`label`] writes them, or nothing, and a
    /// value.
    pub fn family<L: AsRef<str>>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: &[(L, u64)],
    ) {
        let prefix = self.prefix;
        self.text += &format!("# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}\n");
        for (labels, value) in samples {
            self.text += &format!("{prefix}_{name}{} {value}\n", labels.as_ref());
        }
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// A label with its value, in braces.
pub fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{{name}=\"{value}\"}}")
}

/// Appends the reply to a request for metrics.
pub fn write_page(
    text: &str,
    terms: Terms,
    date: &Date,
    reply: &mut Vec<u8>,
) -> CallOutcome<Never> {
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    let page = Reply { content_type, ..Reply::text(Status::Ok, text.as_bytes()) };
    page.write(terms, date, reply);
    http::flow(terms).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_help_type_and_samples() {
        let mut all = Exposition::new("x");
        all.family("n", "gauge", "How many.", &[("", 7)]);
        all.family("m", "counter", "More.", &[(label("a", "b\"\\\n"), 1)]);
        let expected = "# HELP x_n How many.\n# TYPE x_n gauge\nx_n 7\n\
                        # HELP x_m More.\n# TYPE x_m counter\nx_m{a=\"b\\\"\\\\\\n\"} 1\n";
        assert_eq!(all.into_text(), expected);
    }
}
