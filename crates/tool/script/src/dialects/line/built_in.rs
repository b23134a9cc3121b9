//! The built-in workloads of lines: `double`, `echo` and `dialogue`.

use crate::script::{Conversations, EXCHANGES, Script};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// The reply to an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// Its double.
    Double,
    /// The integer.
    Same,
}

/// Requests of decimal 64-bit integers. Not closed.
pub(super) fn integers(seed: u64, due: Reply) -> Script {
    let mut random = StdRng::seed_from_u64(seed);
    let mut script = Script::new(Conversations::Each(1));
    for i in 0..EXCHANGES {
        let n = integer(i, &mut random);
        let request = format!("{n}\n");
        match due {
            Reply::Same => script.push(request.as_bytes(), request.as_bytes()),
            Reply::Double => {
                script.push(request.as_bytes(), format!("{}\n", i128::from(n) * 2).as_bytes());
            }
        }
    }
    script
}

/// Requests of first and last names, alternating. Not closed.
pub(super) fn dialogue(seed: u64) -> Script {
    let mut random = StdRng::seed_from_u64(seed);
    let mut script = Script::new(Conversations::Each(2));
    for _ in 0..EXCHANGES / 2 {
        let (first, last) = (name(&mut random), name(&mut random));
        script.push(format!("{first}\n").as_bytes(), b"last name?\n");
        let hello = format!("hello {first} {last}\n");
        script.push(format!("{last}\n").as_bytes(), hello.as_bytes());
    }
    script
}

/// Integers that buggy servers double incorrectly: signs, and the limits of decimal digits, of 32 bits,
/// of a double's 53 bits and of 64 bits.
const EDGES: [i64; 22] = [
    0,
    1,
    -1,
    9,
    10,
    99,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31) - 1,
    1 << 32,
    (1 << 53) - 1,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 53) - 1,
    (1 << 62) - 1,
    1 << 62,
    -(1 << 62),
    -(1 << 62) - 1,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
];

/// An edge appears once per this number of integers, so that short runs meet edges too.
const EDGE_EVERY: usize = 61;

/// The i-th integer: edges in turn, and between them the bit lengths 1 to 63 equally often.
fn integer(i: usize, random: &mut StdRng) -> i64 {
    if i.is_multiple_of(EDGE_EVERY) {
        return EDGES[i / EDGE_EVERY % EDGES.len()];
    }
    let bits = random.random_range(1..=63);
    let magnitude = (1_i64 << (bits - 1)) | (random.random::<i64>() & ((1_i64 << (bits - 1)) - 1));
    if random.random() { magnitude } else { -magnitude }
}

/// A capitalised name of 3 to 10 letters.
fn name(random: &mut StdRng) -> String {
    let length = random.random_range(3..=10);
    (0..length)
        .map(
            |i| {
                if i == 0 { random.random_range('A'..='Z') } else { random.random_range('a'..='z') }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn closed(mut script: Script) -> Script {
        script.close(1).unwrap();
        script
    }

    #[test]
    fn doubles_are_exact_over_all_magnitudes_and_edges() {
        let script = closed(integers(7, Reply::Double));
        let mut seen = HashSet::new();
        let mut lengths = [0_u32; 66];
        for i in 0..EXCHANGES as u32 {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let n: i64 = text(script.request(i)).trim_end().parse().unwrap();
            assert_eq!(text(script.reply(i)), format!("{}\n", i128::from(n) * 2));
            lengths[(64 - n.unsigned_abs().leading_zeros()) as usize] += 1;
            seen.insert(n);
        }
        assert!(EDGES.iter().all(|edge| seen.contains(edge)), "an edge is missing");
        assert_eq!(HashSet::from(EDGES).len(), EDGES.len(), "an edge is there twice");
        assert!(lengths[1..=63].iter().all(|&n| n > 3_000), "not all magnitudes: {lengths:?}");
    }

    #[test]
    fn the_seed_determines_the_bytes() {
        let bytes = |seed| closed(integers(seed, Reply::Double)).requests(0, 100).to_vec();
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }

    #[test]
    fn a_dialogue_greets_by_both_names() {
        let script = closed(dialogue(3));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().trim_end().to_owned();
        for i in (0..200).step_by(2) {
            let (first, last) = (text(script.request(i)), text(script.request(i + 1)));
            assert!(first.bytes().all(|b| b.is_ascii_alphabetic()));
            assert_eq!(script.reply(i), b"last name?\n");
            assert_eq!(text(script.reply(i + 1)), format!("hello {first} {last}"));
        }
    }
}
