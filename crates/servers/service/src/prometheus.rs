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

    /// Appends a family of histograms of durations, in seconds. `bounds_us`: the longest duration of each bucket except
    /// the last, in microseconds, in increasing order.
    pub fn histograms(&mut self, name: &str, help: &str, bounds_us: &[u64], all: &[Histogram]) {
        let prefix = self.prefix;
        self.text += &format!("# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} histogram\n");
        for Histogram { labels, counts, sum_us } in all {
            let mut sum = 0;
            for (bucket, count) in counts.iter().enumerate() {
                sum += count;
                let le = bounds_us.get(bucket).map_or("+Inf".to_owned(), |us| seconds(*us));
                let bucket = with_label(labels, "le", &le);
                self.text += &format!("{prefix}_{name}_bucket{bucket} {sum}\n");
            }
            self.text += &format!("{prefix}_{name}_sum{labels} {}\n", seconds(*sum_us));
            self.text += &format!("{prefix}_{name}_count{labels} {sum}\n");
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

/// One more label for labels as [`label`] writes them, or for none.
pub fn with_label(labels: &str, name: &str, value: &str) -> String {
    let one = label(name, value);
    match labels.strip_suffix('}') {
        Some(labels) => format!("{labels},{}", one.trim_start_matches('{')),
        None => one,
    }
}

/// Microseconds as seconds.
fn seconds(us: u64) -> String {
    (us as f64 / 1e6).to_string()
}

/// Durations with the same labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The labels, as [`label`] and [`with_label`] write them.
    pub labels: String,
    /// For each bucket, the number of durations that are in no earlier one. There is one bucket more than bounds.
    pub counts: Vec<u64>,
    /// The sum of the durations, in microseconds.
    pub sum_us: u64,
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

    #[test]
    fn the_buckets_of_a_histogram_are_cumulative() {
        let mut all = Exposition::new("x");
        let labels = with_label(&label("a", "b\""), "c", "d");
        let some = Histogram { labels, counts: vec![2, 0, 1], sum_us: 1_500_300 };
        let none = Histogram { labels: String::new(), counts: vec![0, 0, 0], sum_us: 0 };
        all.histograms("h", "How long.", &[100, 1_000_000], &[some, none]);
        let expected = "# HELP x_h How long.\n# TYPE x_h histogram\n\
                        x_h_bucket{a=\"b\\\"\",c=\"d\",le=\"0.0001\"} 2\n\
                        x_h_bucket{a=\"b\\\"\",c=\"d\",le=\"1\"} 2\n\
                        x_h_bucket{a=\"b\\\"\",c=\"d\",le=\"+Inf\"} 3\n\
                        x_h_sum{a=\"b\\\"\",c=\"d\"} 1.5003\n\
                        x_h_count{a=\"b\\\"\",c=\"d\"} 3\n\
                        x_h_bucket{le=\"0.0001\"} 0\nx_h_bucket{le=\"1\"} 0\n\
                        x_h_bucket{le=\"+Inf\"} 0\nx_h_sum 0\nx_h_count 0\n";
        assert_eq!(all.into_text(), expected);
    }
}
