//! What is right although its bytes differ, and what is wrong.

use super::*;

/// An expected message as JSON, the parts of a message that arrives, and a part of what is said about it; an
/// empty text if it is right.
type Case<'c> = (&'c str, &'c [Vec<u8>], &'c str);

#[track_caller]
fn check_all(path: &str, cases: &[Case<'_>]) {
    for (json, parts, wrong) in cases {
        let fault = expectation(path, json).fault(&parts.concat());
        match &fault {
            None => assert_eq!(*wrong, "", "{json}: it was right"),
            Some(fault) => {
                assert!(!wrong.is_empty() && fault.contains(wrong), "{json}: {fault:?}");
            }
        }
    }
}

#[test]
fn the_order_of_fields_and_repeated_fields_do_not_matter() {
    check_all(
        GET,
        &[
            (r#"{"id": 7, "name": "a"}"#, &[varint(1, 7), delimited(2, b"a")], ""),
            (r#"{"id": 7, "name": "a"}"#, &[delimited(2, b"a"), varint(1, 7)], ""),
            // The last one wins.
            (r#"{"id": 7}"#, &[varint(1, 8), varint(1, 7)], ""),
            (r#"{"id": 7}"#, &[varint(1, 7), varint(1, 8)], "`id` is 8; expected 7"),
            // Messages are merged.
            (
                r#"{"maybe": 2.5, "inner": {"id": 1, "name": "a"}}"#,
                &[
                    delimited(11, &varint(1, 1)),
                    delimited(18, &double(1, 2.5)),
                    delimited(11, &delimited(2, b"a")),
                ],
                "",
            ),
            // A varint may have more bytes than it needs.
            (r#"{"id": 7}"#, &[vec![8, 0x87, 0x80, 0]], ""),
            (r#"{"id": 7}"#, &[], "in which `id` is 0; expected 7"),
            ("{}", &[varint(1, 7)], "a message test.Item in which `id` is 7; expected 0"),
            (
                r#"{"name": "a\nb"}"#,
                &[delimited(2, "ä".as_bytes())],
                r#"`name` is "ä"; expected "a\nb""#,
            ),
            (
                r#"{"data": "AAH/"}"#,
                &[delimited(14, &[0, 1, 254])],
                "is the bytes 0001fe (3 bytes); expected the bytes 0001ff",
            ),
            (r#"{"shade": "RED"}"#, &[varint(13, 2)], "`shade` is BLUE; expected RED"),
            (r#"{"shade": 1}"#, &[varint(13, 7)], "`shade` is 7; expected RED"),
            (r#"{"isNew": true}"#, &[varint(27, 1)], ""),
            (r#"{"is_new": true}"#, &[varint(27, 0)], "`is_new` is false; expected true"),
            (
                r#"{"big": "18446744073709551615", "small": -1}"#,
                &[varint(24, u64::MAX), varint(25, 1)],
                "",
            ),
        ],
    );
}

#[test]
fn a_field_without_presence_that_is_absent_is_the_default() {
    check_all(
        GET,
        &[
            ("{}", &[], ""),
            ("{}", &[varint(1, 0), delimited(2, b""), double(3, 0.0), float(4, 0.0)], ""),
            (r#"{"id": 0, "name": ""}"#, &[], ""),
            // 0 and -0 are different values.
            ("{}", &[double(3, -0.0)], "`price` is -0; expected 0"),
            (r#"{"price": 0}"#, &[float(4, -0.0)], "`weight` is -0; expected 0"),
            (r#"{"prices": [-0.0]}"#, &[double(22, -0.0)], ""),
            (r#"{"prices": [-0.0]}"#, &[double(22, 0.0)], "`prices[0]` is 0; expected -0"),
            (r#"{"prices": [0]}"#, &[double(22, -0.0)], "`prices[0]` is -0; expected 0"),
        ],
    );
}

#[test]
fn a_field_with_presence_must_be_set_in_both_or_in_none() {
    check_all(
        GET,
        &[
            (r#"{"stock": 0}"#, &[varint(5, 0)], ""),
            (r#"{"stock": 0}"#, &[], "`stock` is not set; expected 0"),
            ("{}", &[varint(5, 0)], "`stock` is 0; expected not set"),
            (r#"{"inner": {}}"#, &[delimited(11, b"")], ""),
            (r#"{"inner": {}}"#, &[], "`inner` is not set; expected a test.Item"),
            ("{}", &[delimited(11, b"")], "`inner` is a test.Item; expected not set"),
            (r#"{"inner": null, "stock": null}"#, &[], ""),
        ],
    );
    check_all(
        OLD_GET,
        &[
            (r#"{"id": 0}"#, &[varint(1, 0)], ""),
            (r#"{"id": 0}"#, &[], "`id` is not set; expected 0"),
            // The default of a field that is not set is 5.
            (r#"{"id": 0, "size": 5}"#, &[varint(1, 0), varint(2, 5)], ""),
            (r#"{"id": 0, "size": 5}"#, &[varint(1, 0)], "`size` is not set; expected 5"),
            (r#"{"id": 0}"#, &[varint(1, 0), varint(2, 5)], "`size` is 5; expected not set"),
            (r#"{"id": 0, "weight": -0.0}"#, &[varint(1, 0), double(3, -0.0)], ""),
            (r#"{"id": 0, "weight": -0.0}"#, &[varint(1, 0), double(3, 0.0)], "is 0; expected -0"),
        ],
    );
}

#[test]
fn all_numbers_that_are_not_a_number_are_equal() {
    let other = f64::from_bits(0xfff8_0000_0000_0001);
    check_all(
        GET,
        &[
            (
                r#"{"price": "NaN", "weight": "NaN"}"#,
                &[double(3, f64::NAN), float(4, -f32::NAN)],
                "",
            ),
            (r#"{"price": "NaN"}"#, &[double(3, other)], ""),
            (r#"{"price": "NaN"}"#, &[double(3, 1.0)], "`price` is 1; expected NaN"),
            (r#"{"price": 1}"#, &[double(3, other)], "`price` is NaN; expected 1"),
            (r#"{"price": "Infinity"}"#, &[double(3, f64::INFINITY)], ""),
            (r#"{"price": "Infinity"}"#, &[double(3, f64::NEG_INFINITY)], "is -inf; expected inf"),
            (r#"{"maybe": "NaN"}"#, &[delimited(18, &double(1, other))], ""),
            (
                r#"{"weights": {"a": "NaN"}}"#,
                &[delimited(23, &[delimited(1, b"a"), double(2, other)].concat())],
                "",
            ),
            (r#"{"weight": 0.1}"#, &[float(4, 0.1)], ""),
            (
                r#"{"weight": 0.1}"#,
                &[float(4, f32::from_bits(0.1_f32.to_bits() + 1))],
                "`weight` is 0.10000001; expected 0.1",
            ),
        ],
    );
}

#[test]
fn lists_are_packed_or_not() {
    let json = r#"{"sizes": [1, 2, -1], "colors": ["RED", "NONE"]}"#;
    let colors = packed(21, &[1, 0]);
    check_all(
        GET,
        &[
            (json, &[packed(6, &[1, 2, u64::MAX]), colors.clone()], ""),
            (
                json,
                &[varint(6, 1), varint(21, 1), varint(6, 2), varint(21, 0), varint(6, u64::MAX)],
                "",
            ),
            (
                json,
                &[
                    packed(6, &[1]),
                    varint(6, 2),
                    packed(6, &[]),
                    packed(6, &[u64::MAX]),
                    colors.clone(),
                ],
                "",
            ),
            (json, &[packed(6, &[1, 2, 3]), colors.clone()], "`sizes[2]` is 3; expected -1"),
            (json, &[packed(6, &[2, 1, u64::MAX]), colors.clone()], "`sizes[0]` is 2; expected 1"),
            (json, &[packed(6, &[1, 2]), colors.clone()], "`sizes` is 2 values; expected 3 values"),
            (
                json,
                &[packed(6, &[1, 2, u64::MAX, 1]), colors],
                "`sizes` is 4 values; expected 3 values",
            ),
            (
                json,
                &[packed(6, &[1, 2, u64::MAX]), packed(21, &[1, 2])],
                "`colors[1]` is BLUE; expected NONE",
            ),
            (r#"{"tags": ["a", ""]}"#, &[delimited(7, b"a"), delimited(7, b"")], ""),
            (
                r#"{"tags": ["a", ""]}"#,
                &[delimited(7, b"a")],
                "`tags` is 1 values; expected 2 values",
            ),
            ("{}", &[delimited(6, b"")], ""),
        ],
    );
    check_all(
        OLD_GET,
        &[
            (r#"{"id": 1, "sizes": [1, 2]}"#, &[varint(1, 1), packed(4, &[1, 2])], ""),
            (r#"{"id": 1, "sizes": [1, 2]}"#, &[varint(1, 1), varint(4, 1), varint(4, 2)], ""),
        ],
    );
}

#[test]
fn the_entries_of_a_map_have_any_order() {
    let entry =
        |key: &[u8], value: u64| delimited(8, &[delimited(1, key), varint(2, value)].concat());
    let json = r#"{"counts": {"a": 1, "b": "2", "": 0}}"#;
    let part =
        |key: u64, id: u64| delimited(9, &[varint(1, key), delimited(2, &varint(1, id))].concat());
    check_all(
        GET,
        &[
            (json, &[entry(b"a", 1), entry(b"b", 2), entry(b"", 0)], ""),
            (json, &[entry(b"", 0), entry(b"b", 2), entry(b"a", 1)], ""),
            // Key and value are absent, swapped, or there twice.
            (json, &[delimited(8, b""), entry(b"b", 2), entry(b"a", 1)], ""),
            (
                json,
                &[
                    delimited(8, &[varint(2, 2), delimited(1, b"b")].concat()),
                    entry(b"", 0),
                    entry(b"a", 1),
                ],
                "",
            ),
            (json, &[entry(b"a", 5), entry(b"", 0), entry(b"b", 2), entry(b"a", 1)], ""),
            (
                json,
                &[entry(b"a", 1), entry(b"", 0), entry(b"b", 2), entry(b"a", 5)],
                r#"`counts["a"]` is 5; expected 1"#,
            ),
            (json, &[entry(b"a", 1), entry(b"b", 2)], r#"`counts[""]` is not set; expected 0"#),
            (
                json,
                &[entry(b"a", 1), entry(b"b", 2), entry(b"c", 0), entry(b"", 0)],
                r#"`counts["c"]` is 0; expected not set"#,
            ),
            (r#"{"parts": {"7": {"id": 1}}}"#, &[part(7, 1)], ""),
            (r#"{"parts": {"7": {"id": 1}}}"#, &[part(7, 2)], "`parts[7].id` is 2; expected 1"),
        ],
    );
}

#[test]
fn the_last_member_of_a_oneof_wins() {
    check_all(
        GET,
        &[
            (r#"{"text": "a"}"#, &[delimited(11, &varint(1, 1)), delimited(10, b"a")], ""),
            (
                r#"{"text": "a"}"#,
                &[delimited(10, b"a"), varint(12, 0)],
                r#"`text` is not set; expected "a""#,
            ),
            (r#"{"text": ""}"#, &[], r#"`text` is not set; expected """#),
            ("{}", &[delimited(10, b"")], r#"`text` is ""; expected not set"#),
            (r#"{"color": "NONE"}"#, &[varint(12, 0)], ""),
            // The second message is not merged with the first one, because another member was between them.
            (
                r#"{"inner": {"id": 2}}"#,
                &[delimited(11, &delimited(2, b"a")), varint(12, 1), delimited(11, &varint(1, 2))],
                "",
            ),
        ],
    );
}

#[test]
fn well_known_types_have_their_own_form_in_json() {
    let at = [varint(1, 1_700_000_000), varint(2, 500_000_000)].concat();
    let during = [varint(1, -1_i64 as u64), varint(2, -500_000_000_i64 as u64)].concat();
    let number = |value: f64| double(2, value);
    let entry = |name: &[u8], value: &[u8]| {
        delimited(1, &[delimited(1, name), delimited(2, value)].concat())
    };
    check_all(
        GET,
        &[
            (r#"{"at": "2023-11-14T22:13:20.5Z"}"#, &[delimited(16, &at)], ""),
            (r#"{"at": "2023-11-14T23:13:20.500+01:00"}"#, &[delimited(16, &at)], ""),
            (
                r#"{"at": "2023-11-14T22:13:20Z"}"#,
                &[delimited(16, &at)],
                "`at.nanos` is 500000000; expected 0",
            ),
            (r#"{"during": "-1.5s"}"#, &[delimited(17, &during)], ""),
            (r#"{"maybe": 0}"#, &[delimited(18, b"")], ""),
            (r#"{"maybe": 0}"#, &[], "`maybe` is not set"),
            (
                r#"{"maybe": 0}"#,
                &[delimited(18, &double(1, -0.0))],
                "`maybe.value` is -0; expected 0",
            ),
            (
                r#"{"many": "9007199254740993"}"#,
                &[delimited(32, &varint(1, 9_007_199_254_740_993))],
                "",
            ),
            (
                r#"{"mask": "a,bC.d"}"#,
                &[delimited(20, &[delimited(1, b"a"), delimited(1, b"b_c.d")].concat())],
                "",
            ),
            (r#"{"nothing": {}}"#, &[delimited(30, b"")], ""),
            (
                r#"{"free": {"a": 1, "b": -0.0}}"#,
                &[delimited(19, &[entry(b"b", &number(-0.0)), entry(b"a", &number(1.0))].concat())],
                "",
            ),
            (
                r#"{"free": {"a": 1}}"#,
                &[delimited(19, &entry(b"a", &number(2.0)))],
                r#"`free.fields["a"].number_value` is 2; expected 1"#,
            ),
            (r#"{"value": null}"#, &[delimited(29, &varint(1, 0))], ""),
            (r#"{"value": null}"#, &[], "`value` is not set"),
        ],
    );
}

#[test]
fn messages_of_any_type_are_compared_by_their_fields_too() {
    const URL: &str = "type.googleapis.com/test.Item";
    let any =
        |url: &str, value: &[u8]| [delimited(1, url.as_bytes()), delimited(2, value)].concat();
    let json = format!(r#"{{"@type": "{URL}", "id": 1, "name": "a"}}"#);
    let reordered = [delimited(2, b"a"), varint(1, 1)].concat();
    let nested =
        format!(r#"{{"@type": "type.googleapis.com/google.protobuf.Any", "value": {json}}}"#);
    let nested_url = "type.googleapis.com/google.protobuf.Any";
    check_all(
        "/test.Items/Any",
        &[
            (&json, &[any(URL, &reordered)], ""),
            (&json, &[any(URL, &varint(1, 1))], r#"`name` is ""; expected "a""#),
            (
                &json,
                &[any("other.host/test.Item", &reordered)],
                r#"`type_url` is "other.host/test.Item"; expected"#,
            ),
            (&json, &[any("type.googleapis.com/old.Old", &reordered)], "`type_url` is"),
            (&json, &[any("type.googleapis.com/not.Known", b"")], "`type_url` is"),
            (
                &json,
                &[any(URL, &varint(99, 1))],
                "`value` is a message test.Item with the field 99",
            ),
            (&json, &[any(URL, b"\x08")], "is a message test.Item with invalid bytes"),
            (&nested, &[any(nested_url, &any(URL, &reordered))], ""),
            (&nested, &[any(nested_url, &any(URL, &varint(1, 2)))], "`id` is 2; expected 1"),
            (
                r#"{"@type": "a/google.protobuf.Duration", "value": "2s"}"#,
                &[any("a/google.protobuf.Duration", &varint(1, 3))],
                "`seconds` is 3; expected 2",
            ),
        ],
    );
}

#[test]
fn what_the_descriptors_do_not_describe_is_wrong() {
    check_all(
        GET,
        &[
            (
                "{}",
                &[varint(99, 0)],
                "a message test.Item with the field 99, which test.Item does not have: ",
            ),
            (r#"{"inner": {}}"#, &[delimited(11, &varint(99, 0))], "does not have, in `inner`"),
            // Decoders skip these.
            (
                "{}",
                &[delimited(8, &varint(3, 1))],
                "the field 3, which test.Item.CountsEntry does not have, in `counts`",
            ),
            // A decoder would read the number as a length.
            (
                r#"{"counts": {"a": 0}}"#,
                &[vec![0x40, 3, 0x0a, 1, b'a']],
                "the wire type Varint in place of LengthDelimited, in `counts`",
            ),
            (
                "{}",
                &[delimited(1, b"")],
                "the wire type LengthDelimited in place of Varint, in `id`",
            ),
            ("{}", &[varint(7, 1)], "in `tags`"),
            ("{}", &[vec![0x08]], "invalid bytes (invalid varint), in `id`: 08"),
            (
                "{}",
                &[vec![0x12, 5, b'a']],
                "a value of 5 bytes, of which 1 came, in `name`: 120561",
            ),
            ("{}", &[vec![0]], "invalid bytes"),
            ("{}", &[vec![0x0c]], "the end of a group 1 that has not begun"),
            ("{}", &[delimited(2, &[0xff])], "no message test.Item"),
            ("{}", &[vec![0xff; 11]], "invalid bytes"),
        ],
    );
}

#[test]
fn what_the_descriptors_of_an_old_syntax_do_not_describe_is_wrong() {
    let unfinished = [vec![0x3b], varint(1, 1)].concat();
    check_all(
        OLD_GET,
        &[
            (
                r#"{"id": 1, "part": {"n": 2}}"#,
                &[varint(1, 1), vec![0x3b], varint(1, 2), vec![0x3c]],
                "",
            ),
            (
                r#"{"id": 1, "part": {"n": 2}}"#,
                &[varint(1, 1), vec![0x3b], varint(1, 3), vec![0x3c]],
                "`part.n` is 3; expected 2",
            ),
            (r#"{"id": 1}"#, &[varint(1, 1), unfinished], "a group 7 without its end, in `part`"),
            // A decoder keeps these values as unknown fields.
            (
                r#"{"id": 1}"#,
                &[varint(1, 1), varint(5, 9)],
                "the value 9, which old.Old.Color does not have, in `color`",
            ),
            (
                r#"{"id": 1, "color": "RED"}"#,
                &[varint(1, 1), varint(5, 9), varint(5, 1)],
                "in `color`",
            ),
            (r#"{"id": 1, "colors": ["RED"]}"#, &[varint(1, 1), packed(6, &[1, 9])], "in `colors`"),
            (r#"{"id": 1, "[old.note]": "a"}"#, &[varint(1, 1), delimited(100, b"a")], ""),
            (
                r#"{"id": 1, "[old.note]": "a"}"#,
                &[varint(1, 1), delimited(100, b"b")],
                r#"`[old.note]` is "b"; expected "a""#,
            ),
            (r#"{"id": 1, "[old.marks]": [1, 2]}"#, &[varint(1, 1), packed(101, &[1, 2])], ""),
            (
                r#"{"id": 1}"#,
                &[varint(1, 1), delimited(100, b"")],
                r#"`[old.note]` is ""; expected not set"#,
            ),
        ],
    );
}

/// A server may send messages inside each other as deep as it likes.
#[test]
fn deep_messages_end_neither_the_stack_nor_the_load() {
    let mut message = Vec::new();
    for _ in 0..3_000 {
        message = delimited(11, &message);
    }
    let fault = expectation(GET, "{}").fault(&message).unwrap();
    assert!(fault.contains("more than 100 messages inside each other"), "{fault}");
    // Each of them is inside a message of any type, which has no such limit.
    let url = b"type.googleapis.com/google.protobuf.Any";
    let mut message = Vec::new();
    for _ in 0..1_000 {
        message = [delimited(1, url), delimited(2, &message)].concat();
    }
    let inner = r#"{"@type": "type.googleapis.com/google.protobuf.Empty", "value": {}}"#;
    let json =
        format!(r#"{{"@type": "type.googleapis.com/google.protobuf.Any", "value": {inner}}}"#);
    let fault = expectation("/test.Items/Any", &json).fault(&message).unwrap();
    assert!(fault.contains("type_url"), "{fault}");
}

#[test]
fn encodings_that_were_right_are_known_and_others_are_still_compared() {
    let expectation = expectation(GET, r#"{"id": 7, "name": "a"}"#);
    let right: Vec<Vec<u8>> = (0..6)
        .map(|i| [vec![varint(1, 9); i], vec![varint(1, 7), delimited(2, b"a")]].concat().concat())
        .collect();
    for _ in 0..3 {
        for bytes in &right {
            assert_eq!(expectation.fault(bytes), None);
            let mut wrong = bytes.clone();
            *wrong.last_mut().unwrap() = b'b';
            assert!(expectation.fault(&wrong).is_some());
        }
    }
    // Those that came first, among them the own one, need no allocation.
    let count = allocation_counter::measure(|| {
        right[..4].iter().for_each(|bytes| assert_eq!(expectation.fault(bytes), None));
    });
    assert_eq!(count.count_total, 0);
}

#[test]
fn long_encodings_of_a_short_message_are_not_kept() {
    let expectation = expectation(GET, r#"{"id": 7}"#);
    let long = varint(1, 7).repeat(100_000);
    for _ in 0..2 {
        let count = allocation_counter::measure(|| assert_eq!(expectation.fault(&long), None));
        assert!(count.count_total > 0);
    }
}

/// Each element takes hundreds of bytes when it is decoded: 4 MiB would take 1 GiB and many seconds.
#[test]
fn a_message_with_many_more_values_is_wrong_without_being_decoded() {
    let mut deep = varint(1, 1);
    (0..95).for_each(|_| deep = delimited(28, &deep));
    let any =
        |value: &[u8]| delimited(15, &[delimited(1, b"a/test.Item"), delimited(2, value)].concat());
    let many = delimited(28, &varint(1, 1)).repeat(800_000);
    let expected = r#"{"any": {"@type": "a/test.Item", "id": 1}}"#;
    let part = "more values than expected: decoded, it takes more than 16 MiB";
    check_all(
        GET,
        &[
            ("{}", std::slice::from_ref(&many), part),
            ("{}", &[deep.repeat(10_000)], part),
            ("{}", &[varint(6, 1).repeat(1_000_000)], part),
            ("{}", &[packed(6, &[1; 1_000_000])], part),
            ("{}", &[delimited(8, b"").repeat(1_000_000)], part),
            (expected, &[any(&many)], part),
            // Nothing is kept of other values.
            ("{}", &[delimited(6, b"").repeat(1_000_000)], ""),
        ],
    );
}

/// Some libraries write every default.
#[test]
fn long_encodings_of_an_equal_message_are_right() {
    let json = format!(
        r#"{{"items": [{}], "sizes": [{}]}}"#,
        vec!["{}"; 5_000].join(","),
        vec!["1"; 5_000].join(",")
    );
    let mut defaults = [varint(1, 0), delimited(2, b""), double(3, 0.0), float(4, 0.0)].concat();
    for number in [13, 24, 25, 27, 31] {
        defaults.extend(varint(number, 0));
    }
    defaults.extend([delimited(14, b""), delimited(6, b""), delimited(22, b"")].concat());
    let items = delimited(28, &defaults).repeat(5_000);
    let sizes = [0x30, 0x81, 0x80, 0x80, 0x80, 0].repeat(5_000);
    let reply = [items, sizes].concat();
    assert!(reply.len() < expectation(GET, &json).longest(), "{}", reply.len());
    check_all(GET, &[(&json, &[reply], "")]);
}

/// A server announces as many bytes as it likes.
#[test]
fn the_length_of_a_message_is_limited_by_the_expected_one() {
    let longest = |json: &str| expectation(GET, json).longest();
    assert!((65_536..70_000).contains(&longest("{}")), "{}", longest("{}"));
    let name = format!(r#"{{"name": "{}"}}"#, "x".repeat(100_000));
    assert!((865_536..870_000).contains(&longest(&name)), "{}", longest(&name));
    let name = format!(r#"{{"name": "{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(longest(&name), 4 << 20);
}
