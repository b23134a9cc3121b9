//! Lines: in every style, each program replies according to a direct implementation of its
//! specification, written here with big integers.

use crate::styles::{
    client::Client,
    play::{LIMITS, STYLES, all_styles, cut, play, secs},
};
use num_bigint::BigInt;
use proptest::prelude::*;
use regatta_service::{Program, ServiceProgram, by_hand, double};

/// The output of `double` for a whole input, after which the client closes.
fn double_oracle(input: &[u8]) -> Vec<u8> {
    let mut out = String::new();
    let mut rest = input;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        let bare = line.strip_suffix(b"\r").filter(|_| end.is_some()).unwrap_or(line);
        let maybe_cr = end.is_none() && line.len() == 1025 && line.ends_with(b"\r");
        if bare.len() > 1024 && !maybe_cr {
            return (out + "error: line longer than 1024 bytes\n").into_bytes();
        }
        let Some(end) = end else { break };
        if bare == b"end" {
            break;
        }
        let plain = std::str::from_utf8(bare).unwrap_or("?");
        let digits = plain.strip_prefix(['+', '-']).unwrap_or(plain);
        let integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match plain.parse::<BigInt>() {
            Ok(n) if integer && n >= i64::MIN.into() && n <= u64::MAX.into() => {
                out += &format!("{}\n", n * 2i32);
            }
            _ => {
                out += "error: not an integer: ";
                for byte in bare.iter().take(32) {
                    match byte {
                        b'\\' => out += "\\\\",
                        0x20..=0x7e => out.push(*byte as char),
                        _ => out += &format!("\\x{byte:02x}"),
                    }
                }
                out.push('\n');
            }
        }
        rest = &rest[end + 1..];
    }
    out.into_bytes()
}

/// The output of the dialogue.
fn dialogue_oracle(input: &[u8]) -> Vec<u8> {
    let (mut out, mut first) = (Vec::new(), None::<Vec<u8>>);
    for line in input.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n")) {
        let line = line[..line.len() - 1].to_vec();
        let line = line.strip_suffix(b"\r").map(<[u8]>::to_vec).unwrap_or(line);
        if line.is_empty() {
            out.extend_from_slice(b"error: a name is empty\n");
        } else if let Some(first) = first.take() {
            out.extend([b"hello ", &first[..], b" ", &line[..], b"\n"].concat());
        } else if line == b"end" {
            break;
        } else {
            first = Some(line);
            out.extend_from_slice(b"last name?\n");
        }
    }
    out
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        2 => "[+-]?[0-9]{0,22}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
        1 => (1020usize..1028, prop_oneof![Just(b'7'), Just(b'\r')]).prop_map(|(n, b)| vec![b; n]),
        1 => Just(b"end".to_vec()),
    ]
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (proptest::collection::vec((line(), end), 0..40), line()).prop_map(|(lines, partial)| {
        let mut input: Vec<u8> =
            lines.into_iter().flat_map(|(line, end)| [&line, end.as_bytes()].concat()).collect();
        input.extend(partial);
        input
    })
}

proptest! {
    #[test]
    fn double_replies_are_the_same_in_every_style(
        input in input(),
        cuts in proptest::collection::vec(1usize..2000, 1..12),
    ) {
        let expected = double_oracle(&input);
        all_styles(ServiceProgram(double::Double), &cut(&input, &cuts), &expected);
        all_styles(by_hand::Double, &cut(&input, &cuts), &expected);
    }

    #[test]
    fn dialogue_replies_are_the_same_in_every_style(
        names in proptest::collection::vec("[a-zA-Z é]{0,12}|end", 0..30),
        cuts in proptest::collection::vec(1usize..30, 1..12),
    ) {
        let input = names.join("\n").into_bytes();
        all_styles(by_hand::Dialogue, &cut(&input, &cuts), &dialogue_oracle(&input));
    }
}

#[test]
fn an_input_split_at_any_byte_is_answered_the_same() {
    let input = b"21\n-9223372036854775808\r\nbad\xff\n\n+0\r\n18446744073709551615\nend\n5\n";
    let expected = double_oracle(input);
    for at in 0..=input.len() {
        let pieces: Vec<_> = [&input[..at], &input[at..]]
            .iter()
            .filter(|p| !p.is_empty())
            .map(|p| p.to_vec())
            .collect();
        all_styles(ServiceProgram(double::Double), &pieces, &expected);
        all_styles(by_hand::Double, &pieces, &expected);
    }
    all_styles(ServiceProgram(double::Double), &cut(input, &[1]), &expected);
}

/// 64 KiB of invalid lines cause 800 KiB of replies.
#[test]
fn many_invalid_lines_are_all_answered() {
    let input = b"x\n".repeat(32 * 1024);
    let expected = double_oracle(&input);
    all_styles(ServiceProgram(double::Double), &[input], &expected);
}

/// All 512 ways to split the input.
#[test]
fn a_short_input_split_in_every_way_is_answered_the_same() {
    let input = b"4\r\n\n-3\nend";
    let expected = double_oracle(input);
    for cuts in 0_u32..1 << (input.len() - 1) {
        let mut pieces = vec![Vec::new()];
        for (at, byte) in input.iter().enumerate() {
            pieces.last_mut().expect("there is one").push(*byte);
            if cuts >> at & 1 == 1 {
                pieces.push(Vec::new());
            }
        }
        all_styles(ServiceProgram(double::Double), &pieces, &expected);
        all_styles(by_hand::Double, &pieces, &expected);
        all_styles(by_hand::Dialogue, &pieces, &dialogue_oracle(input));
    }
}

#[test]
fn lines_that_arrive_together_are_answered_with_one_write() {
    fn writes(program: impl Program) {
        for style in STYLES {
            let client = Client::new().send("1\n2\nx\n3").pause(secs(1)).send("\n").half_close();
            let played = play(style, &program, &client, LIMITS);
            let writes: [&[u8]; 2] = [b"2\n4\nerror: not an integer: x\n", b"6\n"];
            assert_eq!(played.writes(), writes, "{style:?}");
        }
    }
    writes(ServiceProgram(double::Double));
    writes(by_hand::Double);
}

#[test]
fn a_slow_request_and_a_silent_client_time_out() {
    fn closed(client: &Client, program: impl Program) -> Vec<(Vec<u8>, u64)> {
        let played = STYLES.iter().map(|style| play(*style, &program, client, LIMITS));
        played.map(|played| (played.output(), played.closed.as_secs())).collect()
    }
    let slow = Client::new().pause(secs(5)).send("1").pause(secs(7)).send("2");
    let in_time = slow.clone().pause(secs(2)).send("3\n4");
    let silent = in_time.clone().pause(secs(6)).send("\n");
    let all = |output: &str, at: u64| vec![(output.as_bytes().to_vec(), at); STYLES.len()];
    for (client, output, at) in [
        (slow, "", 15),         // the request started at 5 and may take 10
        (in_time, "246\n", 24), // the next request started at 14
    ] {
        assert_eq!(closed(&client, ServiceProgram(double::Double)), all(output, at));
        assert_eq!(closed(&client, by_hand::Double), all(output, at));
    }
    // A callback server checks after a quarter of the idle timeout, and counts from then.
    let idle = LIMITS.idle.as_secs();
    let lates = [closed(&silent, ServiceProgram(double::Double)), closed(&silent, by_hand::Double)];
    for (output, at) in lates.concat() {
        assert_eq!(output, b"246\n8\n");
        assert!((20 + idle..=20 + idle * 3 / 2).contains(&at), "{at}");
    }
}
