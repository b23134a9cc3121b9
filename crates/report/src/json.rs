//! The machine forms: the records themselves.

use regatta_record::{Capacity, Summary};
use serde::Serialize;

/// A judged race: `cells` and `noise_floor` at its top.
pub fn json(summary: &Summary) -> String {
    pretty(summary)
}

/// A capacity.
pub fn capacity_json(found: &Capacity) -> String {
    pretty(found)
}

pub(crate) fn pretty(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    text
}
