//! Expected messages of streams, with their numbers.

use super::*;
use crate::dialects::grpc::{placeholder::Text, protobuf::Numbered};

/// Every kind of place that a number can have.
const PLACES: &[(&str, &str)] = &[
    (GET, r#"{"name": "Hello {n}", "id": {n}}"#),
    (GET, r#"{"name": "{n}", "id": "{n-1}", "longName": {n+4294967295}}"#),
    (GET, r#"{"name": "ä\n\u007bn} {n-1}{n}\"\\{n+10}", "data": "AAA=", "isNew": true}"#),
    (GET, r#"{"price": {n}, "weight": {n-1}, "stock": {n-1}, "big": {n}, "small": {n+63}}"#),
    (GET, r#"{"fixed": {n+7}, "many": {n-1}, "maybe": "{n}", "shade": "RED"}"#),
    (
        GET,
        r#"{"sizes": [-1, {n}, 300, {n+127}], "tags": ["", "t{n}", "u"], "prices": [{n-1}, 0.5]}"#,
    ),
    (GET, r#"{"items": [{}, {"id": {n}, "items": [{"name": "{n}{n}"}]}, {"id": 7}]}"#),
    (
        GET,
        r#"{"inner": {"inner": {"text": "{n}"}}, "counts": {"b": 1, "a": 2}, "at": "2024-01-31T12:00:00Z"}"#,
    ),
    (GET, r#"{"nothing": {}, "any": {"@type": "a/test.Item", "id": 1}, "name": "{n}"}"#),
    (
        OLD_GET,
        r#"{"id": {n}, "size": {n-1}, "weight": {n}, "sizes": [{n}, 5], "inner": {"id": {n}}}"#,
    ),
    (OLD_GET, r#"{"id": 1, "part": {"n": {n}}, "[old.note]": "n{n}", "[old.marks]": [{n}, 1]}"#),
];

fn of(path: &str, json: &str) -> Numbered {
    types().numbered(path, json, None).unwrap_or_else(|why| panic!("{json}: {why}"))
}

/// The message with this number, as the template has it.
fn message(expected: &Numbered, number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    expected.template().write(number, usize::MAX, &mut bytes);
    assert_eq!(expected.template().length(number), bytes.len() as u64);
    bytes
}

#[test]
fn a_template_has_the_bytes_of_the_filled_json() {
    let up_to_300 = 1..=300;
    for (path, json) in PLACES {
        let (expected, text) = (of(path, json), Text::parse(json).unwrap());
        for number in up_to_300.clone().chain([16_383, 16_384, 99_999, 16_777_000]) {
            let encoded = types().reply(path, &text.filled(number)).unwrap();
            assert_eq!(message(&expected, number), encoded, "{json}, message {number}");
            assert_eq!(expected.fault(number, &encoded), None, "{json}, message {number}");
        }
    }
}

#[test]
fn a_part_of_a_message_is_written_up_to_any_length() {
    for (path, json) in PLACES {
        let expected = of(path, json);
        for number in [1, 128] {
            let whole = message(&expected, number);
            for length in 0..=whole.len() + 1 {
                let mut part = vec![7];
                expected.template().write(number, length, &mut part);
                assert_eq!(part[1..], whole[..length.min(whole.len())], "{json}");
            }
        }
    }
}

#[test]
fn a_message_of_another_number_is_wrong_in_every_place() {
    for (path, json) in PLACES {
        let expected = of(path, json);
        for (number, other) in [(1, 2), (2, 1), (2, 3), (9, 10), (127, 128), (16_384, 16_383)] {
            let wrong = expected.fault(number, &message(&expected, other));
            assert!(wrong.is_some_and(|why| why.contains("; expected ")), "{json}: {number}");
        }
    }
}

#[test]
fn other_encodings_are_right_and_other_messages_wrong() {
    let expected = of(GET, r#"{"id": {n}, "name": "a{n}", "inner": {"longName": {n-1}}}"#);
    let [id, name] = [varint(1, 5), delimited(2, b"a5")];
    let inner = delimited(11, &varint(31, 4));
    let both = [&id[..], &name].concat();
    let right: &[&[&[u8]]] = &[
        &[&id, &name, &inner],
        &[&inner, &name, &id],
        &[&varint(1, 4), &inner, &both],
        &[&both, &varint(31, 0), &delimited(3 + 3, &[]), &inner],
        &[&both, &delimited(11, &varint(31, 9)), &inner],
        &[&[0x08, 0x85, 0], &name, &inner],
    ];
    for right in right {
        assert_eq!(expected.fault(5, &right.concat()), None, "{right:?}");
    }
    let wrong: &[(&[&[u8]], &str)] = &[
        (&[&both], "`inner` is not set; expected a test.Item"),
        (&[&both, &delimited(11, &[])], "`inner.long_name` is 0; expected 4"),
        (&[&name, &inner], "`id` is 0; expected 5"),
        (&[&varint(1, 6), &name, &inner], "`id` is 6; expected 5"),
        (&[&both, &inner, &varint(1, 4)], "`id` is 4; expected 5"),
        (&[&id, &delimited(2, b"a05"), &inner], r#"`name` is "a05"; expected "a5""#),
        (&[&both, &inner, &varint(5, 0)], "`stock` is 0; expected not set"),
        (&[&both, &inner, &varint(99, 0)], "the field 99, which test.Item does not have"),
        (&[&both, &inner[..3]], "a value of 3 bytes, of which 1 came"),
    ];
    for (wrong, part) in wrong {
        let why = expected.fault(5, &wrong.concat()).expect(part);
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn numbers_that_a_field_cannot_have_are_wrong() {
    for (json, last) in [
        (r#"{"id": {n}}"#, i32::MAX as u64),
        (r#"{"id": {n-1}, "big": {n}}"#, i32::MAX as u64 + 1),
        (r#"{"fixed": {n+5}}"#, u64::from(u32::MAX) - 5),
        (r#"{"weight": {n}, "price": {n}}"#, 1 << 24),
        (r#"{"price": {n+1}}"#, (1 << 53) - 1),
        (r#"{"longName": {n}}"#, i64::MAX as u64),
        (r#"{"name": "{n}"}"#, u64::MAX),
    ] {
        let expected = of(GET, json);
        assert!(expected.is_in_range(last), "{json}");
        assert_eq!(expected.fault(last, &message(&expected, last)), None, "{json}");
        if last < u64::MAX {
            assert!(!expected.is_in_range(last + 1), "{json}");
            let same = message(&expected, last + 1);
            let why = expected.fault(last + 1, &same).expect(json);
            assert!(why.contains("too large for a field"), "{json}: {why}");
        }
    }
}

#[test]
fn a_message_without_placeholders_is_the_same_each_time() {
    let expected = of(GET, r#"{"id": 7, "name": "{name} \u007bn}"}"#);
    let [id, name] = [varint(1, 7), delimited(2, b"{name} {n}")];
    for number in [1, 2, u64::MAX] {
        assert_eq!(message(&expected, number), [&id[..], &name].concat());
        assert_eq!(expected.fault(number, &[&name[..], &id].concat()), None);
        assert!(expected.fault(number, &id).is_some());
    }
}

#[track_caller]
fn refused(json: &str, messages: Option<u32>, part: &str) {
    let why = types().numbered(GET, json, messages).map(drop).expect_err(json);
    assert!(why.contains(part), "{json}: {why}");
}

#[test]
fn placeholders_in_other_places_are_refused() {
    for (json, part) in [
        (r#"{"isNew": {n}}"#, "invalid type: integer `2`"),
        (r#"{"shade": {n}}"#, "`shade`: a placeholder in a field of the type test.Color"),
        (r#"{"data": "{n}{n}{n}{n}"}"#, "`data`: a placeholder in a field of the type bytes"),
        (
            r#"{"at": "2024-01-3{n-1}T12:00:00Z"}"#,
            "`at`: a placeholder in a google.protobuf.Timestamp",
        ),
        (r#"{"during": "{n}s"}"#, "`during`: a placeholder in a google.protobuf.Duration"),
        (r#"{"free": {"a": {n}}}"#, "`free`: a placeholder in a google.protobuf.Struct"),
        (
            r#"{"any": {"@type": "a/test.Item", "id": {n}}}"#,
            "`any`: a placeholder in a google.protobuf.Any",
        ),
        (r#"{"counts": {"a": {n}}}"#, "`counts`: a placeholder in a map"),
        (r#"{"counts": {"{n}": 1}}"#, "`counts`: a placeholder in a map"),
        (r#"{"items": [{"i{n}": 1}]}"#, r#"`items[0]`: test.Item has no field "i2""#),
        (r#"{"name": {n}}"#, "(with 2 in place of {n})"),
        (r#"{"id": "1{n}"}"#, "`id`: a number must be a placeholder alone"),
        (r#"{"id": "-{n}"}"#, "`id`: a number must be a placeholder alone"),
        (r#"{"id": 1{n}}"#, "a placeholder must be a whole value"),
        (r#"{"id": -{n}}"#, "a placeholder must be a whole value"),
        (r#"{"id": {n}{n}}"#, "a placeholder must be a whole value"),
        (r#"{{n}: 1}"#, "no JSON: key must be a string"),
        (r#"{"name": "\u00{n}0"}"#, "but not inside an escape"),
        (r#"{"name": "\{n}"}"#, "no JSON: invalid escape"),
        (r#"{"idd": {n}}"#, r#"test.Item has no field "idd"; it has id, name, "#),
        (r#"{"id": {n}, "id": {n}}"#, r#""id" is given twice"#),
        (r#"{"name": "{n:03}"}"#, "{n:03} is unknown; expected {n}, the number"),
        (r#"{"id": {n}"#, "no JSON: EOF"),
    ] {
        refused(json, None, part);
    }
}

/// The field is named as its type, which could hide that the name has a placeholder.
#[test]
fn names_with_placeholders_are_refused_even_if_they_become_known() {
    let proto = "syntax = \"proto3\"; message M { int32 a2 = 1; string b = 2; }
                 service S { rpc W(M) returns (stream M); }";
    let types = Types::compile("m.proto", &[Path::new("")], &mut |_| Ok(proto.into())).unwrap();
    let of = |json| types.numbered("/S/W", json, None).map(drop);
    assert_eq!(of(r#"{"a2": 1, "b": "{n}"}"#), Ok(()));
    let why = of(r#"{"a{n}": 1, "b": "{n}"}"#).unwrap_err();
    assert!(why.contains(r#"a placeholder in the name "a{n}""#), "{why}");
    assert!(of(r#"{"a{n}": 1}"#).is_err());
}

#[test]
fn numbers_that_do_not_fit_the_last_message_are_refused() {
    let of = |messages| types().numbered(GET, r#"{"id": {n+2147483640}}"#, messages).map(drop);
    assert_eq!(of(None), Ok(()));
    assert_eq!(of(Some(7)), Ok(()));
    let why = of(Some(8)).unwrap_err();
    assert!(why.starts_with("`id`: {n+2147483640} is out of range in message 8; "), "{why}");
    refused(r#"{"weight": {n+16777216}}"#, None, "exactly the numbers up to 16777216");
    refused(r#"{"id": {n+4294967295}}"#, None, "out of range");
}
