//! Descriptions of expected replies.

use super::*;
use crate::dialects::http::requests::HttpRequest;
use crate::workload::regex::regex;
use serde_json::{json, value::to_raw_value};

#[test]
fn describes_expected_replies() {
    let words = |content, text: &str| {
        let mut expected = HttpRequest::get("/").expected;
        expected.content = content;
        expected.in_words(text.as_bytes()).split_once(", ").unwrap().1.to_owned()
    };
    let get = HttpRequest::get("/").expected;
    assert_eq!(get.in_words(b""), "a status from 200 to 299");
    assert_eq!(words(Content::Text, "a\n"), "the content a\\n");
    assert_eq!(words(Content::Prefix, "a"), "a content starting with a");
    let matching = Content::Matches(regex("a+").unwrap());
    assert_eq!(words(matching, ""), "a content matching a+");
    let member = |pointer: &str, is| Member { pointer: pointer.into(), is };
    let list = to_raw_value(&json!([1])).unwrap();
    let members = vec![member("/a", Is::Value(list)), member("/b", Is::Any)];
    assert_eq!(words(Content::Json(members), ""), "a content in JSON, /a = [1], /b present");
    let field = |name: &str, value| Field { name: name.into(), value };
    let fields = vec![
        field("x", Value::Any),
        field("y", Value::Is("1".into())),
        field("z", Value::Matches(regex("b").unwrap())),
    ];
    let expected = Expected { status: Status::Is(201), fields, ..get };
    assert_eq!(
        expected.in_words(b""),
        "status 201, the field x, the field y: 1, the field z matching b"
    );
}
