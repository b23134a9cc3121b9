//! Which replies are correct.

use super::super::expected::{Is, Member};
use super::*;
use crate::dialects::http::requests::HttpRequest;
use regex::bytes::Regex as BytesRegex;
use serde_json::{json, value::to_raw_value};
use std::cell::Cell;

const WALL: Nanos = 1_000 * SECOND;

fn stays(of: Content, data: &str, text: &str) -> Option<Nanos> {
    stays_after(0, of, data, text)
}

fn stays_after(waited: Nanos, of: Content, data: &str, text: &str) -> Option<Nanos> {
    let mut expected = HttpRequest::get("/").expected;
    expected.content = of;
    let answer = Cell::default();
    let (expected, text, now) = (&expected, text.as_bytes(), 50 * SECOND);
    let criteria =
        Criteria { expected, text, now, waited, wall: || WALL, tolerates: false, answer: &answer };
    content(criteria, data.as_bytes())
}

#[test]
fn accepts_the_time_of_hello_while_it_is_near_the_clock() {
    let clock = |text: &str| stays(Content::Clock { within: 2 }, text, "");
    assert_eq!(clock("Hello. The time is 1000"), Some(52 * SECOND));
    assert_eq!(clock("Hello. The time is 1002"), Some(54 * SECOND));
    assert_eq!(clock("Hello. The time is 998"), Some(50 * SECOND));
    assert_eq!(clock("Hello. The time is 999.5"), Some(51 * SECOND + SECOND / 2));
    for wrong in ["1003", "997", "997.9", "", "1000\n", " 1000", "+1000", "1e3", "inf", "1.0.0"] {
        assert_eq!(clock(&format!("Hello. The time is {wrong}")), None, "{wrong}");
    }
    assert_eq!(clock("hello. The time is 1000"), None);
    assert_eq!(clock("Hello. The time is 1000"), clock("Hello. The time is 1000.0"));
}

/// After the load was stalled for three seconds, a server is not at fault for replies that waited.
#[test]
fn a_reply_may_be_older_by_the_time_it_waited_to_be_read() {
    let clock = |waited, text: &str| {
        let data = format!("Hello. The time is {text}");
        stays_after(waited, Content::Clock { within: 2 }, &data, "")
    };
    assert_eq!(clock(3 * SECOND, "995"), Some(50 * SECOND), "not valid after now");
    assert_eq!(clock(3 * SECOND, "994"), None);
    assert_eq!(clock(3 * SECOND, "1003"), None, "waiting does not permit a time in the future");
    assert_eq!(clock(3 * SECOND, "1000"), Some(52 * SECOND));
}

#[test]
fn a_digest_is_64_lower_case_hex_digits() {
    let right = "0123456789abcdef".repeat(4);
    assert_eq!(digest(right.as_bytes()).unwrap()[..4], [0x01, 0x23, 0x45, 0x67]);
    assert_eq!(stays(Content::Digest, &right, ""), Some(0));
    for wrong in [&right[1..], &(right.clone() + "0"), "", &right.to_uppercase()] {
        assert_eq!(stays(Content::Digest, wrong, ""), None, "{wrong}");
    }
    assert_eq!(stays(Content::Digest, &right.replacen('f', "g", 1), ""), None);
}

#[test]
fn checks_each_kind_of_content() {
    let right = |of, data, text| stays(of, data, text) == Some(Nanos::MAX);
    assert!(right(Content::Any, "x", "") && right(Content::Text, "ab", "ab"));
    assert!(!right(Content::Text, "abc", "ab") && !right(Content::Text, "a", "ab"));
    assert!(right(Content::Prefix, "abc", "ab") && !right(Content::Prefix, "a", "ab"));
    let regex = || Content::Matches(BytesRegex::new(r"\A(?:a|ab)\z").unwrap());
    assert!(right(regex(), "ab", "") && !right(regex(), "abc", ""));
    let members = |pointer: &str, is| Content::Json(vec![Member { pointer: pointer.into(), is }]);
    let data = r#"{"a": [1, {"b": null}]}"#;
    let value = |value: serde_json::Value| Is::Value(to_raw_value(&value).unwrap());
    assert!(right(members("/a/1/b", value(json!(null))), data, ""));
    assert!(
        right(members("/a/0", Is::Any), data, "") && !right(members("/a/2", Is::Any), data, "")
    );
    assert!(!right(members("/a/0", value(json!(2))), data, ""));
    assert!(!right(members("", Is::Any), "{", ""));
    let inner = r#"{"a": {"b": [1.0, {"c": 2}]}}"#;
    let same = |is| right(members("/a", value(is)), inner, "");
    assert!(same(json!({"b": [1, {"c": 2.0}]})));
    assert!(!same(json!({"b": [1, {"c": 2, "d": 0}]})) && !same(json!({"b": [1, {}]})));
    assert!(!same(json!({"b": [1, {"d": 2}]})) && !same(json!({"b": [1, {"c": 2.5}]})));
}
