//! A workload file of calls.

use super::{
    asks::{GrpcAsks, GrpcCall},
    hex::from_hex,
    stream::{Template, expect},
};
use crate::workload::file::{FileText, Kept};
use serde::Deserialize;
use std::collections::BTreeMap;

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
    #[serde(default)]
    stream: bool,
    messages: Option<u32>,
}

/// Reads a file.
pub(super) fn read(file: FileText<'_>) -> Result<GrpcAsks, String> {
    let raw: RawFile = file.parse()?;
    let numbered = raw.request.into_iter().enumerate();
    let calls = numbered
        .map(|(i, raw)| call(raw).map_err(|why| format!("request {}: {why}", i + 1)))
        .collect::<Result<Vec<_>, _>>()?;
    let lists = file.lists(BTreeMap::new(), BTreeMap::new());
    let Kept { name, text, .. } = file.keep(raw.name, lists)?;
    GrpcAsks::new(name, calls, Some(text))
}

fn call(raw: RawCall) -> Result<GrpcCall, String> {
    let RawCall { weight, path, message_hex, expect_hex, stream, messages } = raw;
    let message = from_hex(&message_hex).map_err(|why| format!("`message_hex`: {why}"))?;
    let template = expect_hex.map(|text| Template::parse(&text)).transpose();
    let template = template.map_err(|why| format!("`expect_hex`: {why}"))?;
    let (expected, stream) = expect(stream, messages, template)
        .map_err(|why| format!("{why}: write `stream = true`"))?;
    Ok(GrpcCall { weight: weight.unwrap_or(1), path, message, expected, stream })
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
            ("[[request]]\npath = \"/a/b\"\nmessages = 1", "write `stream = true`"),
            (
                "[[request]]\npath = \"/a/b\"\nexpect_hex = \"08{n:varint}\"",
                "request 1: {n} is the number of a message in a stream, and needs one",
            ),
            (
                "[[request]]\npath = \"/a/b\"\nstream = true\nexpect_hex = \"{m:varint}\"",
                "request 1: `expect_hex`: {m:varint} is unknown; expected {n:varint}",
            ),
            ("[[request]]\npath = \"/a/b\"\nbody = \"\"", "unknown field `body`"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_another_process_sends_is_checked_too() {
        let sent = |path: &str, weight: u32, calls: usize| {
            let call = GrpcCall { weight, ..GrpcCall::new(path) };
            let call = serde_json::to_value(call).unwrap();
            let asks = serde_json::json!({ "name": "x", "calls": vec![call; calls], "text": null });
            serde_json::from_value::<GrpcAsks>(asks).map_err(|error| error.to_string())
        };
        assert!(sent("/a/b", 1, 1).is_ok());
        for (path, weight, calls, part) in [
            ("/a/b", 1, 0, "it has 0 requests"),
            ("/a/b", 1, 1_001, "it has 1001 requests"),
            ("/a/b", 0, 2, "weight above 0"),
            ("/a\r\nx: 1/b", 1, 1, "is not the path of a method"),
        ] {
            let error = sent(path, weight, calls).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn weights_and_messages_may_be_absent() {
        let text = "protocol = \"grpc\"\n[[request]]\npath = \"/a.B/C\"";
        let asks = read(FileText::alone(text, "mine")).unwrap();
        let expected =
            GrpcAsks::new("mine".into(), vec![GrpcCall::new("/a.B/C")], Some(text.into())).unwrap();
        assert_eq!(asks, expected);
    }
}
