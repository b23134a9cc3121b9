//! Messages as JSON: what is refused, and what is encoded.

use super::*;

#[track_caller]
fn refused(path: &str, json: &str, part: &str) {
    let why = types().reply(path, json).expect_err(json);
    assert!(why.contains(part), "{json}: {why}");
    assert!(types().message(path, json).is_err());
}

#[test]
fn names_that_do_not_exist_are_refused_with_those_that_do() {
    refused(GET, r#"{"idd": 7}"#, r#"test.Item has no field "idd"; it has id, name, price,"#);
    refused(GET, r#"{"idd": 7}"#, "value, nothing, ...");
    refused(
        GET,
        r#"{"inner": {"items": [{}, {"x": 1}]}}"#,
        r#"`inner.items[1]`: test.Item has no field "x""#,
    );
    refused(GET, r#"{"parts": {"1": {"x": 1}}}"#, r#"`parts["1"]`: test.Item has no field "x""#);
    refused(
        GET,
        r#"{"shade": "GREEN"}"#,
        r#"`shade`: test.Color has no value "GREEN"; it has NONE, RED, BLUE"#,
    );
    refused(
        OLD_GET,
        r#"{"id": 1, "[old.nota]": 1}"#,
        "it has id, size, weight, sizes, color, colors, ",
    );
    refused(
        GET,
        r#"{"any": {"@type": "a/test.Item", "x": 1}}"#,
        r#"`any`: test.Item has no field "x""#,
    );
}

#[test]
fn names_given_twice_are_refused() {
    refused(GET, r#"{"id": 7, "id": 7}"#, r#""id" is given twice; remove one"#);
    refused(GET, r#"{"id": 7, "i\u0064": 8}"#, r#""id" is given twice"#);
    refused(
        GET,
        r#"{"longName": 7, "long_name": 7}"#,
        "`long_name`: the field is given twice, by its two names",
    );
    refused(
        GET,
        r#"{"items": [{"inner": {"id": 1, "id": 2}}]}"#,
        r#"`items[0].inner`: "id" is given twice"#,
    );
    refused(GET, r#"{"counts": {"a": 1, "a": 2}}"#, r#"`counts`: "a" is given twice"#);
    refused(GET, r#"{"parts": {"1": {}, "01": {}}}"#, r#"`parts["01"]`: the key is given twice"#);
    refused(GET, r#"{"free": {"a": [{"b": 1, "b": 2}]}}"#, r#"`free.a[0]`: "b" is given twice"#);
    refused(
        GET,
        r#"{"any": {"@type": "a/test.Item", "id": 1, "id": 2}}"#,
        r#"`any`: "id" is given twice"#,
    );
    refused(
        GET,
        r#"{"any": {"@type": "a/test.Item", "@type": "a/test.Item"}}"#,
        r#""@type" is given twice"#,
    );
    refused(
        GET,
        r#"{"any": {"@type": "a/google.protobuf.Struct", "value": {"b": 1, "b": 2}}}"#,
        r#""b" is given twice"#,
    );
    refused(GET, r#"{"text": "a", "color": 1}"#, "multiple fields provided for oneof 'kind'");
}

#[test]
fn values_of_another_kind_are_refused() {
    refused(GET, r#"{"id": "x"}"#, "no JSON of a message test.Item: invalid digit");
    refused(GET, r#"{"id": 2147483648}"#, "out of range");
    refused(GET, r#"{"id": 1.5}"#, "expected integer value");
    refused(GET, r#"{"name": 7}"#, "invalid type: integer `7`, expected a string");
    refused(GET, r#"{"data": "*"}"#, "invalid base64");
    refused(GET, r#"{"at": "yesterday"}"#, "invalid rfc3339 timestamp");
    refused(GET, r#"{"sizes": 1}"#, "expected a list");
    refused(GET, r#"{"sizes": [null]}"#, "invalid type: null");
    refused(GET, "7", "invalid type: integer `7`");
    refused(GET, "{", "no JSON: EOF");
    refused(GET, "{} {}", "no JSON: trailing characters");
    refused(GET, "", "no JSON: EOF");
    refused(OLD_GET, "{}", "the required field `id` of old.Old is missing");
    refused(OLD_GET, r#"{"id": 1, "inner": {}}"#, "the required field `id`");
    refused(OLD_GET, r#"{"id": 1, "color": 9}"#, "the value 9, which old.Old.Color does not have");
    let deep = format!("{}{}", r#"{"inner":"#.repeat(200), "1".to_owned() + &"}".repeat(200));
    refused(GET, &deep, "more than 100 values inside each other");
    let deep = format!(r#"{{"value": {}1{}}}"#, "[".repeat(200), "]".repeat(200));
    refused(GET, &deep, "more than 100 values inside each other");
}

#[test]
fn messages_of_any_type_inside_each_other_are_limited() {
    let outer = r#"{"@type": "a/google.protobuf.Any", "value": "#;
    let inner = r#"{"@type": "a/test.Item"}"#;
    let nested = |times: usize| format!("{}{inner}{}", outer.repeat(times), "}".repeat(times));
    assert!(types().reply("/test.Items/Any", &nested(50)).is_ok());
    let why = types().reply("/test.Items/Any", &nested(3_000)).unwrap_err();
    assert!(why.contains("more than 100 values inside each other"), "{why}");
}

/// The deserialization would take the nearest value.
#[test]
fn numbers_that_would_become_others_are_refused() {
    refused(
        GET,
        r#"{"longName": 9223372036854775808}"#,
        "`longName`: 9223372036854775808 is out of range",
    );
    refused(GET, r#"{"longName": 9.3e18}"#, "out of range");
    refused(GET, r#"{"longName": -9223372036854775809}"#, "out of range");
    refused(GET, r#"{"big": 18446744073709551616}"#, "`big`: 18446744073709551616 is out of range");
    refused(GET, r#"{"price": "1e999"}"#, "out of range; expected a number, \"NaN\"");
    refused(GET, r#"{"price": "inf"}"#, "out of range");
    refused(GET, r#"{"weight": 1e39}"#, "out of range");
    refused(GET, r#"{"many": 9223372036854775808}"#, "`many`: 9223372036854775808 is out of range");
    // The encoding would lose the sign.
    for json in [
        r#"{"price": -0.0}"#,
        r#"{"price": "-0"}"#,
        r#"{"weight": -0}"#,
        r#"{"maybe": -0.0}"#,
        r#"{"weights": {"a": -0.0}}"#,
        r#"{"any": {"@type": "a/test.Item", "price": -0.0}}"#,
        r#"{"any": {"@type": "a/google.protobuf.DoubleValue", "value": -0.0}}"#,
    ] {
        refused(GET, json, "cannot be distinguished from 0 here; write the message as hex digits");
    }
    for json in [
        r#"{"longName": 9223372036854775807, "big": 18446744073709551615}"#,
        r#"{"longName": -9223372036854775808, "price": "Infinity", "weight": 3.4e38}"#,
        r#"{"longName": 1.0, "price": 1e308, "prices": [-0.0]}"#,
    ] {
        assert!(types().reply(GET, json).is_ok(), "{json}");
    }
}

/// A message of a type that is not in the files can neither be encoded nor compared by its fields.
#[test]
fn messages_of_unknown_types_are_refused() {
    refused(
        GET,
        r#"{"any": {"@type": "a.b/not.Known"}}"#,
        "`any`: the type not.Known is not in the .proto files; import",
    );
    refused(
        GET,
        r#"{"any": {"@type": "test.Item"}}"#,
        "has no slash; write type.googleapis.com/test.Item",
    );
    refused(GET, r#"{"any": {}}"#, r#"`any`: expected "@type" with the type"#);
}

#[test]
fn messages_are_encoded() {
    let types = types();
    let encoded = |json: &str| types.message(GET, json).unwrap();
    assert_eq!(
        encoded(r#" {"id": 7, "tags": ["a", "b"]} "#),
        [varint(1, 7), delimited(7, b"a"), delimited(7, b"b")].concat()
    );
    assert_eq!(encoded("{}"), b"");
    assert_eq!(encoded(r#"{"sizes": [1, 2]}"#), packed(6, &[1, 2]));
    assert_eq!(
        encoded(r#"{"shade": 7, "data": "_-8"}"#),
        [varint(13, 7), delimited(14, &[255, 239])].concat()
    );
    let long = format!(r#"{{"name": "{}"}}"#, "a".repeat(5 << 20));
    assert!(types.message(GET, &long).unwrap_err().contains("expected at most 4194304"));
}

#[test]
fn methods_that_do_not_exist_are_refused_with_those_that_do() {
    let types = types();
    let refused = |path: &str| types.check_method(path, false).unwrap_err();
    assert_eq!(
        refused("/test.Item/Get"),
        "the service test.Item is not in the .proto files, which have old.Olds, test.Items"
    );
    assert_eq!(
        refused("/test.Items/Gett"),
        "the service test.Items has no method Gett; it has Get, Old, Any, Watch, Put"
    );
    assert!(
        refused("/test.Items/Watch").contains("returns a stream of messages; expected a unary")
    );
    assert!(refused("/test.Items/Put").contains("takes a stream of messages"));
    let as_stream = |path: &str| types.check_method(path, true);
    assert_eq!(as_stream("/test.Items/Watch"), Ok(()));
    assert!(as_stream(GET).unwrap_err().contains("returns one message"));
    assert!(as_stream("/test.Items/Put").unwrap_err().contains("takes a stream of messages"));
    assert!(refused("").contains("the service  is not in"));
    // A service of an imported file.
    assert_eq!(types.check_method("/old.Olds/Get", false), Ok(()));
    assert_eq!(types.check_empty(GET), Ok(()));
    assert!(types.check_empty(OLD_GET).unwrap_err().contains("required field `id`"));
}

/// What is written in JSON must not become another value.
#[test]
fn values_that_would_be_rounded_are_refused() {
    for at in ["2024-01-01T23:59:60Z", "2024-12-31T23:59:60.5Z"] {
        refused(GET, &format!(r#"{{"at": "{at}"}}"#), "has a leap second");
    }
    let part = "is more precise than nanoseconds; expected at most 9 digits";
    refused(GET, r#"{"at": "2024-01-01T00:00:00.1234567891Z"}"#, part);
    refused(GET, r#"{"during": "1.0000000001s"}"#, part);
    let any = r#"{"any": {"@type": "a/google.protobuf.Duration", "value": "1.0000000001s"}}"#;
    refused(GET, any, part);
    let part = "may not be exact; write it without a fraction and an exponent";
    refused(
        GET,
        r#"{"longName": 9007199254740993.0}"#,
        "`longName`: 9007199254740993.0 may not be",
    );
    refused(GET, r#"{"big": 123456789012345678.0}"#, part);
    refused(GET, r#"{"many": 9007199254740993.0}"#, part);
    refused(GET, r#"{"price": 1e-400}"#, "`price`: 1e-400 is too small: it would become 0");
    refused(GET, r#"{"price": "-1e-400"}"#, "is too small");
    refused(GET, r#"{"weight": 1e-60}"#, "is too small");
    refused(GET, r#"{"mask": "a,,b"}"#, "has an empty path; remove a comma");
    refused(GET, r#"{"mask": ","}"#, "has an empty path");
    for json in [
        r#"{"at": "2024-01-01T23:59:59.123456789Z", "during": "1.000000001s", "mask": ""}"#,
        r#"{"longName": 9007199254740991.0, "big": 1e3, "price": 0e-400, "weight": 1e-40}"#,
    ] {
        assert!(types().reply(GET, json).is_ok(), "{json}");
    }
}

/// Two runs with the same seed send the same bytes.
#[test]
fn maps_are_encoded_in_the_order_of_their_keys() {
    let counts: Vec<String> = (0..50).rev().map(|i| format!(r#""{i:02}": "{i}""#)).collect();
    let counts = format!(r#""counts": {{{}}}"#, counts.join(","));
    let of = |json: &str| types().message(GET, json).unwrap();
    let got = of(&format!("{{{counts}}}"));
    let keys: Vec<&[u8]> =
        got.windows(2).filter(|two| two[0].is_ascii_digit() && two[1].is_ascii_digit()).collect();
    assert!(keys.len() == 50 && keys.is_sorted(), "{got:x?}");
    for json in [
        format!("{{{counts}}}"),
        format!(
            r#"{{"parts": {{"2": {{{counts}}}, "-1": {{}}, "10": {{"items": [{{{counts}}}]}}}}}}"#
        ),
        format!(r#"{{"any": {{"@type": "a/test.Item", {counts}}}}}"#),
        r#"{"free": {"a": {"c": 1, "d": 2, "e": 3, "f": [{"x": 1, "y": 2, "z": 3}]}, "b": null}}"#
            .into(),
    ] {
        let first = of(&json);
        (0..10).for_each(|_| assert_eq!(of(&json), first, "{json}"));
    }
    let old =
        r#"{"id": 1, "part": {"n": 7}, "[old.marks]": [1, 2], "inner": {"id": 2, "part": {}}}"#;
    assert_eq!(types().message(OLD_GET, old).unwrap(), types().message(OLD_GET, old).unwrap());
}
