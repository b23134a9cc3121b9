//! A workload file and its requests as written, not validated yet.

use crate::workload::files::FileContent;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A workload file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    pub longest_reply: Option<usize>,
    #[serde(default)]
    pub request: Vec<Request>,
    #[serde(default)]
    pub lines: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub files: BTreeMap<String, FileContent>,
}

/// A request and its expected reply, or a conversation of several. A step of a conversation has the
/// same keys except `weight` and `steps`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub weight: Option<u32>,
    pub steps: Option<Vec<Request>>,
    pub method: Option<String>,
    pub path: Option<String>,
    #[serde(default, deserialize_with = "pairs")]
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub body_file: Option<String>,
    pub chunked: Option<bool>,
    pub status: Option<Value>,
    #[serde(default, deserialize_with = "pairs")]
    pub expect_headers: Vec<(String, Value)>,
    pub exact: Option<String>,
    pub prefix: Option<String>,
    pub regex: Option<String>,
    #[serde(default, deserialize_with = "pairs")]
    pub json: Vec<(String, Value)>,
    pub json_equals: Option<String>,
}

/// Reads a table, sorted by key.
fn pairs<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(String, V)>, D::Error> {
    Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
}
