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

pub(crate) fn pretty(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    text
}
