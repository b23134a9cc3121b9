//! A workload file of calls.

use super::{
    asks::{GrpcAsks, GrpcCall},
    hex::from_hex,
    rules,
};
use crate::workload::file::{FileText, Kept};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of `[[request]]`.
const MOST_REQUESTS: usize = 1_000;

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    #[serde(default)]
    request: Vec<RawCall>,
}

/// A call as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    weight: Option<u32>,
    path: String,
    #[serde(default)]
    message_hex: String,
    expect_hex: Option<String>,
}

/// Reads a file.
pub(super) fn read(file: FileText<'_>) -> Result<GrpcAsks, String> {
    let raw: RawFile = file.parse()?;
    let requests = raw.request.len();
    if !(1..=MOST_REQUESTS).contains(&requests) {
        return Err(format!(
            "it has {requests} requests; expected 1 to {MOST_REQUESTS}, each as [[request]] with \
             path = \"/PACKAGE.SERVICE/METHOD\""
        ));
    }
    let numbered = raw.request.into_iter().enumerate();
    let calls = numbered
        .map(|(i, raw)| call(raw).map_err(|why| format!("request {}: {why}", i + 1)))
        .collect::<Result<Vec<_>, _>>()?;
    if calls.iter().all(|call| call.weight == 0) {
        return Err(
            "all requests have weight 0, so none would ever be sent; set a weight above 0".into()
        );
    }
    let lists = file.lists(BTreeMap::new(), BTreeMap::new());
    let Kept { name, text, .. } = file.keep(raw.name, lists)?;
    Ok(GrpcAsks::of_file(name, calls, text))
}

fn call(raw: RawCall) -> Result<GrpcCall, String> {
    let RawCall { weight, path, message_hex, expect_hex } = raw;
    rules::check_path(&path)?;
    let message = message(&message_hex).map_err(|why| format!("`message_hex`: {why}"))?;
    let expected = expect_hex.map(|text| self::message(&text)).transpose();
    let expected = expected.map_err(|why| format!("`expect_hex`: {why}"))?;
    Ok(GrpcCall { weight: weight.unwrap_or(1), path, message, expected })
}

fn message(text: &str) -> Result<Vec<u8>, String> {
    let message = from_hex(text)?;
    rules::check_length(message.len())?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<GrpcAsks, String> {
        read(FileText::alone(&format!("protocol = \"grpc\"\n{text}"), "mine"))
    }

    #[test]
    fn mistakes_are_named_with_their_request() {
        for (text, part) in [
            ("", "it has 0 requests"),
            ("[[request]]\npath = \"/a\"", "request 1: \"/a\" is not the path of a method"),
            (
                "[[request]]\npath = \"/a/b\"\nmessage_hex = \"0\"",
                "request 1: `message_hex`: 1 hex",
            ),
            ("[[request]]\npath = \"/a/b\"\nexpect_hex = \"x\"", "`expect_hex`: 'x' is not a hex"),
            ("[[request]]\npath = \"/a/b\"\nweight = 0", "weight above 0"),
            ("[[request]]\npath = \"/a/b\"\nbody = \"\"", "unknown field `body`"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn weights_and_messages_may_be_absent() {
        let text = "protocol = \"grpc\"\n[[request]]\npath = \"/a.B/C\"";
        let asks = read(FileText::alone(text, "mine")).unwrap();
        let expected = GrpcAsks::of_file("mine".into(), vec![GrpcCall::new("/a.B/C")], text.into());
        assert_eq!(asks, expected);
    }
}
