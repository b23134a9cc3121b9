//! JSON: the records themselves.

use regatta_record::{Capacity, Summary};
use serde::Serialize;

/// Renders a judged race as JSON, with `cells` and `noise_floor` at the top level.
pub fn json(summary: &Summary) -> String {
    pretty(summary)
}

/// Renders a capacity as JSON.
pub fn capacity_json(found: &Capacity) -> String {
    pretty(found)
}

/// Renders plain data as JSON for people, with a newline at its end.
pub fn pretty(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    text
}
