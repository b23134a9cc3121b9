//! Streams whose messages are expected as JSON, and compared by their fields.

use super::*;

const TEXT: &str = r#"
protocol = "grpc"
proto = "items.proto"

[[request]]
path = "/test.Items/Watch"
stream = true
messages = 12
expect = '{"sequence": {n}, "message": "Hello {n}", "inner": {"message": "x{n-1}"}}'

[files]
"items.proto" = '''
syntax = "proto3";
package test;
message Item { int32 sequence = 1; string message = 2; Item inner = 3; bool done = 4; }
service Items { rpc Watch(Item) returns (stream Item); }
'''
"#;

/// The fields of a message, by its number.
fn fields(number: u8) -> [Vec<u8>; 3] {
    let text = |field: u8, text: String| [&[field, text.len() as u8], text.as_bytes()].concat();
    let inner = text(0x12, format!("x{}", number - 1));
    let inner = [&[0x1a, inner.len() as u8][..], &inner].concat();
    [vec![0x08, number], text(0x12, format!("Hello {number}")), inner]
}

/// A right message, in the encoding of the load.
fn item(number: u8) -> Vec<u8> {
    fields(number).concat()
}

/// The same message in other encodings.
fn otherwise(number: u8, form: usize) -> Vec<u8> {
    let [sequence, message, inner] = fields(number);
    match form % 5 {
        0 => [inner, message, sequence].concat(),
        1 => [item(number), vec![0x20, 0]].concat(),
        2 => [item(number % 9 + 1), item(number)].concat(),
        3 => [vec![0x08, number | 0x80, 0], message, inner].concat(),
        _ => item(number),
    }
}

fn items(numbers: impl IntoIterator<Item = u8>) -> Vec<Vec<u8>> {
    numbers.into_iter().map(item).collect()
}

/// One turn of a server that sends these messages on every stream.
fn turn(pair: &mut Pair<Reply>, messages: &[Vec<u8>], frame: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for asked in pair.asked(&mut out).iter().rev() {
        Answer { frame, ..stream(messages) }.write(asked.stream, &mut out);
    }
    out
}

#[test]
fn every_encoding_is_right_in_pieces_and_frames_of_any_size() {
    for size in [1, 2, 5, 13, 17, 1 << 16] {
        for frame in [1, 4, 13, 1 << 14] {
            let mut pair = of_file(TEXT);
            for turns in 1..=6 {
                let encoded = (1..=12).map(|number| otherwise(number, turns + number as usize));
                let bytes = turn(&mut pair, &encoded.collect::<Vec<_>>(), frame);
                pair.receive(&bytes, size);
                assert_eq!(pair.answered, turns as u32 * STREAMS);
            }
            assert!(pair.streamed.iter().all(|streamed| streamed.messages == 12));
        }
    }
}

#[test]
fn nothing_is_allocated_for_messages_in_the_encoding_of_the_load() {
    // All the same, in other encodings too.
    let same = TEXT.replace("{n}", "7").replace("{n-1}", "6");
    for (text, messages) in [
        (TEXT, items(1..=12)),
        (&same[..], (0..12).map(|form| otherwise(7, [0, 1, 3, 4][form % 4])).collect()),
    ] {
        for size in [3, 100, 1 << 16] {
            let mut pair = of_file(text);
            for turns in 0..200 {
                if turns == 50 {
                    pair.allocations = 0;
                }
                let bytes = turn(&mut pair, &messages, 1 << 14);
                pair.receive(&bytes, size);
            }
            assert_eq!(pair.allocations, 0, "{size}");
            assert_eq!(pair.answered, 200 * STREAMS);
        }
    }
}

/// What the load finds if one stream, after honest turns, has these messages.
fn found(content: &[u8], size: usize) -> Result<(), Box<Exchange>> {
    let mut pair = of_file(TEXT);
    for _ in 0..3 {
        let bytes = turn(&mut pair, &items(1..=12), 4);
        pair.receive(&bytes, 1 << 16);
    }
    let mut out = Vec::new();
    for (i, asked) in pair.asked(&mut out).iter().enumerate() {
        let mut answer = stream(&items(1..=12));
        if i == 2 {
            *super::content(&mut answer) = content.to_vec();
        }
        answer.write(asked.stream, &mut out);
    }
    pair.try_receive(&out, size)
}

/// Messages with their prefixes.
fn framed_all(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut content = Vec::new();
    messages.iter().for_each(|message| framing::write(message, &mut content));
    content
}

/// The right messages, with another one in place of number 4.
fn fourth(message: Vec<u8>) -> Vec<u8> {
    let mut all = items(1..=12);
    all[3] = message;
    framed_all(&all)
}

#[test]
fn every_wrong_message_is_found_with_its_number_and_field() {
    let of = |numbers: &[u8]| framed_all(&items(numbers.iter().copied()));
    let at_four = "message 4: a message test.Item ";
    let in_which = |fault: &str| format!("{at_four}in which {fault}");
    let [_, message, inner] = fields(4);
    let wrong_end = [&item(4)[..item(4).len() - 1], b"4"].concat();
    let too_long = [&framed_all(&items(1..=3))[..], &[0, 0, 0x50, 0, 0, 8]].concat();
    for (content, part) in [
        // Swapped, repeated, missing, one more.
        (of(&[1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11, 12]), in_which("`sequence` is 5; expected 4")),
        (of(&[1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11]), in_which("`sequence` is 3; expected 4")),
        (of(&[1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]), in_which("`sequence` is 5; expected 4")),
        (
            of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            "no message 12: the stream ended after 11 of 12".into(),
        ),
        (framed_all(&items(1..=13)), "bytes of message 13; expected 12 messages".into()),
        // Another encoding of another message.
        (fourth(otherwise(5, 0)), in_which("`sequence` is 5; expected 4")),
        (fourth(otherwise(3, 2)), in_which("`sequence` is 3; expected 4")),
        // The same length, and equal up to the last byte.
        (fourth(wrong_end), in_which(r#"`inner.message` is "x4"; expected "x3""#)),
        // Only one of the numbers.
        (
            fourth([vec![0x08, 4], message.clone(), fields(5)[2].clone()].concat()),
            in_which(r#"`inner.message` is "x4"; expected "x3""#),
        ),
        // Absent fields, others than the default, and unknown ones.
        (fourth([message, inner].concat()), in_which("`sequence` is 0; expected 4")),
        (fourth(Vec::new()), in_which("`sequence` is 0; expected 4")),
        (fourth([item(4), vec![0x20, 1]].concat()), in_which("`done` is true; expected false")),
        (
            fourth([item(4), vec![0x28, 1]].concat()),
            format!("{at_four}with the field 5, which test.Item does not have"),
        ),
        (fourth([item(4), vec![0x12]].concat()), format!("{at_four}with invalid bytes")),
        (too_long, "message 4: a message of 5242880 bytes; the expected one has at most".into()),
        (
            framed_all(&items(1..=4))[..60].to_vec(),
            "message 3: a message that ends after ".to_owned(),
        ),
    ] {
        for size in [1, 3, 7, 14, 50, 1 << 16] {
            let exchange = found(&content, size).expect_err(&part);
            assert!(exchange.received.contains(&part), "{part}: {exchange:?}");
            let expected =
                r#"status 200, 12 messages, each {"sequence": {n}, "message": "Hello {n}","#;
            assert!(exchange.expected.starts_with(expected), "{exchange:?}");
        }
    }
    assert_eq!(found(&framed_all(&items(1..=12)), 7), Ok(()));
}

#[test]
fn a_stream_as_json_survives_a_message_to_another_process() {
    let workload = crate::Workload::from_text(TEXT, "items").unwrap();
    let sent = serde_json::to_value(&workload).unwrap();
    let again: crate::Workload = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!(format!("{workload:?}"), format!("{again:?}"));
    for (change, part) in [
        (serde_json::json!({ "json": "{\"sequenc\": 1}" }), "request 1: test.Item has no field"),
        (serde_json::json!({ "json": "{\"sequence\": {m}}" }), "request 1: no JSON"),
        (serde_json::json!({ "text": "" }), "unknown variant"),
    ] {
        let mut sent = sent.clone();
        sent["asks"]["calls"][0]["stream"]["each"] = change;
        let error = serde_json::from_value::<crate::Workload>(sent).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let mut without = sent;
    without["asks"]["types"] = serde_json::Value::Null;
    let error = serde_json::from_value::<crate::Workload>(without).unwrap_err().to_string();
    assert!(error.contains("request 1: JSON needs the `.proto` file"), "{error}");
}

#[test]
fn a_table_of_a_file_has_placeholders_in_quotes() {
    let table =
        r#"expect = { sequence = "{n}", message = "Hello {n}", inner = { message = "x{n-1}" } }"#;
    let json = TEXT.lines().find(|line| line.starts_with("expect")).unwrap();
    let mut pair = of_file(&TEXT.replace(json, table));
    let bytes = turn(&mut pair, &items(1..=12), 9);
    pair.receive(&bytes, 13);
    assert_eq!(pair.answered, STREAMS);
}

/// Such a number has the bytes of the template, and would be read as -2147483648.
#[test]
fn a_number_that_its_field_cannot_have_is_wrong_although_the_bytes_are_those_of_the_template() {
    let each = r#"expect = '{"sequence": {n+2147483645}}'"#;
    let json = TEXT.lines().find(|line| line.starts_with("expect")).unwrap();
    let text = TEXT.replace(json, each).replace("messages = 12\n", "");
    let sequence = |low: u8, high: u8| vec![0x08, low, 0xff, 0xff, 0xff, high];
    let all = [sequence(0xfe, 7), sequence(0xff, 7), vec![0x08, 0x80, 0x80, 0x80, 0x80, 8]];
    for size in [1, 7, 1 << 16] {
        let mut pair = of_file(&text);
        let bytes = turn(&mut pair, &all[..2], 1 << 14);
        pair.receive(&bytes, size);
        assert_eq!(pair.answered, STREAMS);
        let bytes = turn(&mut pair, &all, 1 << 14);
        let exchange = pair.try_receive(&bytes, size).unwrap_err();
        let wrong = "message 3: its number is too large for a field of the expected message";
        assert_eq!(exchange.received, wrong, "{size}");
    }
}
