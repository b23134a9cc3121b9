//! A request as it stands in a file, or as flags tell it; nothing is checked yet.

use crate::workload::conversation::Raw;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A request and what must come back, or a conversation of several. A step of one is the same, but
/// without weight and steps.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workload) struct Request {
    pub weight: Option<u32>,
    pub steps: Option<Vec<Request>>,
    pub method: Option<String>,
    pub path: Option<String>,
    #[serde(default, deserialize_with = "pairs")]
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub body_file: Option<String>,
    pub status: Option<Value>,
    #[serde(default, deserialize_with = "pairs")]
    pub expect_headers: Vec<(String, Value)>,
    pub exact: Option<String>,
    pub prefix: Option<String>,
    pub regex: Option<String>,
    #[serde(default, deserialize_with = "pairs")]
    pub json: Vec<(String, Value)>,
}

impl Raw for Request {
    type Step = super::Step;
    const KEYS: &str = "other keys of a request";
    const EXAMPLE: &str = "{ path = \"/\" }, { path = \"/items\" }";

    fn is_empty(&self) -> bool {
        let Request { weight: _, steps: _, method, path, headers, body, body_file, .. } = self;
        let texts = [method, path, body, body_file, &self.exact, &self.prefix, &self.regex];
        texts.iter().all(|text| text.is_none())
            && self.status.is_none()
            && [&self.expect_headers, &self.json].iter().all(|pairs| pairs.is_empty())
            && headers.is_empty()
    }
}

/// A table, in the order of its keys.
fn pairs<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(String, V)>, D::Error> {
    Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
}
