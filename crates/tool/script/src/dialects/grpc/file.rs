//! A workload file of calls.

use super::{
    asks::{GrpcAsks, GrpcCall},
    hex::from_hex,
    protobuf::Types,
    rules,
    stream::{ExpectedMessage, MessageStream},
};
use crate::workload::{
    file::{FileText, Kept},
    files::FileContent,
    lists::NamedLists,
};
use serde::Deserialize;
use std::{collections::BTreeMap, path::Path};

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    /// The `.proto` file with the services.
    proto: Option<String>,
    /// Files in place of those on disk.
    #[serde(default)]
    files: BTreeMap<String, FileContent>,
    #[serde(default)]
    request: Vec<RawCall>,
}

/// A call as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    weight: Option<u32>,
    path: String,
    message: Option<Json>,
    message_hex: Option<String>,
    expect: Option<Json>,
    expect_hex: Option<String>,
    #[serde(default)]
    stream: bool,
    messages: Option<u32>,
}

/// A message: a text of JSON, or a table.
#[derive(Deserialize)]
#[serde(try_from = "toml::Value")]
struct Json(String);

impl TryFrom<toml::Value> for Json {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::String(text) => Ok(Json(text)),
            toml::Value::Table(_) => Ok(Json(json(value).to_string())),
            other => Err(format!(
                "expected a message as JSON, e.g. '{{\"id\": 7}}', or as a table, e.g. {{ id = 7 }}; got {other}"
            )),
        }
    }
}

/// A value of TOML as JSON. A date is a text, and so are the numbers that JSON does not have.
fn json(value: toml::Value) -> serde_json::Value {
    match value {
        toml::Value::Float(number) => match serde_json::Number::from_f64(number) {
            Some(number) => number.into(),
            None if number.is_nan() => "NaN".into(),
            None if number > 0.0 => "Infinity".into(),
            None => "-Infinity".into(),
        },
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(is_true) => is_true.into(),
        toml::Value::Array(values) => values.into_iter().map(json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(name, value)| (name, json(value))).collect()
        }
    }
}

/// Reads a file.
pub(super) fn read(file: FileText<'_>) -> Result<GrpcAsks, String> {
    let raw: RawFile = file.parse()?;
    let mut lists = file.lists(BTreeMap::new(), raw.files);
    let types = raw.proto.map(|proto| types(&proto, &mut lists)).transpose();
    let types = types.map_err(|why| format!("`proto`: {why}"))?;
    let numbered = raw.request.into_iter().enumerate();
    let calls = numbered
        .map(|(i, raw)| {
            call(raw, types.as_ref()).map_err(|why| format!("request {}: {why}", i + 1))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let Kept { name, text, .. } = file.keep(raw.name, lists)?;
    GrpcAsks::new(name, calls, Some(text))?.typed(types)
}

/// Compiles the `.proto` file of this name, relative to the workload file.
fn types(proto: &str, lists: &mut NamedLists) -> Result<Types, String> {
    let path = Path::new(proto);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folders: Vec<&Path> = path.ancestors().skip(1).collect();
    Types::compile(&name, &folders, &mut |path| lists.file(&path.to_string_lossy()))
}

fn call(raw: RawCall, types: Option<&Types>) -> Result<GrpcCall, String> {
    let RawCall { weight, path, message, message_hex, expect, expect_hex, stream, messages } = raw;
    let message = match (message, message_hex) {
        (Some(_), Some(_)) => return Err("`message` and `message_hex`; remove one".into()),
        (Some(Json(json)), None) => {
            let encoded = types.ok_or(rules::NEEDS_TYPES)?.message(&path, &json);
            encoded.map_err(|why| format!("`message`: {why}"))?
        }
        (None, Some(text)) => from_hex(&text).map_err(|why| format!("`message_hex`: {why}"))?,
        (None, None) => {
            types.map_or(Ok(()), |types| types.check_empty(&path))?;
            Vec::new()
        }
    };
    let (name, each) = match (expect, expect_hex) {
        (Some(_), Some(_)) => return Err("`expect` and `expect_hex`; remove one".into()),
        (Some(Json(json)), None) => ("expect", Some(ExpectedMessage::Json(json))),
        (None, Some(hex)) => ("expect_hex", Some(ExpectedMessage::Hex(hex))),
        (None, None) => ("messages", None),
    };
    let call = GrpcCall { weight: weight.unwrap_or(1), message, ..GrpcCall::new(&path) };
    call.expecting(stream, MessageStream { messages, each }, types)
        .map_err(|why| format!("`{name}`: {why}"))
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
            ("[[request]]\npath = \"/a/b\"\nmessages = 1", "needs `--stream` (`stream = true`)"),
            (
                "[[request]]\npath = \"/a/b\"\nexpect_hex = \"08{n:varint}\"",
                "request 1: `expect_hex`: {n} is the number of a message in a stream, and needs `--stream`",
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
        let each = Some(ExpectedMessage::Hex("{m:varint}".into()));
        let stream = Some(MessageStream { messages: None, each });
        let call = GrpcCall { stream, ..GrpcCall::new("/a/b") };
        let wrong = serde_json::json!({ "name": "x", "calls": [call], "text": null });
        let error = serde_json::from_value::<GrpcAsks>(wrong).unwrap_err().to_string();
        assert!(error.contains("request 1: {m:varint} is unknown"), "{error}");
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
