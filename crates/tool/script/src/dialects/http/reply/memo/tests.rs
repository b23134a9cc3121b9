//! Recognition of repeated replies.

use super::super::expected::{Field, Value};
use super::*;
use crate::dialects::http::requests::HttpRequest;
use std::cell::Cell;

#[test]
fn a_head_with_given_values_is_recognised_only_for_the_same_text() {
    let mut expected = HttpRequest::get("/").expected;
    expected.fields = vec![Field { name: "etag".into(), value: Value::Given }];
    let bytes = b"HTTP/1.1 200 -\r\nETag: 1\r\nContent-Length: 1\r\n\r\nx";
    let mut memo = Memo::default();
    let head = bytes.len() - 1;
    let right = Right { bytes, head, text: b"1\n", until: Nanos::MAX, ends: false, status: 200 };
    memo.learn(right, &expected);
    let answer = Cell::default();
    let mut again = |text: &[u8]| {
        let expected = &expected;
        let criteria = Criteria {
            expected,
            text,
            now: 0,
            waited: 0,
            wall: || 0,
            tolerates: false,
            answer: &answer,
        };
        memo.recognise(bytes, criteria)
    };
    assert_eq!(again(b"1\n"), Some((bytes.len(), false)));
    assert_eq!(again(b"2\n"), None);
    assert_eq!(again(b"1\n"), Some((bytes.len(), false)));
}
