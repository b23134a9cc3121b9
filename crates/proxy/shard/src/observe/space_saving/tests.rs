//! Summaries against exact counts.

use super::*;
use proptest::prelude::*;
use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, DefaultHasher, RandomState},
};

/// Adds these keys to a summary.
fn summary<K: AsRef<[u8]>>(keys: &[K], hasher: &RandomState) -> Summary {
    let mut summary = Summary::new();
    keys.iter().for_each(|key| summary.add(Key::new(key.as_ref(), hasher)));
    summary
}

/// Checks the promises of the merged summaries of these streams.
fn check<K: AsRef<[u8]>>(streams: &[&[K]]) {
    let hasher = RandomState::new();
    let mut exact: HashMap<Key, u64> = HashMap::new();
    for key in streams.iter().flat_map(|stream| stream.iter()) {
        *exact.entry(Key::new(key.as_ref(), &hasher)).or_default() += 1;
    }
    let summaries: Vec<Summary> = streams.iter().map(|stream| summary(stream, &hasher)).collect();
    let (total, frequent) = merged(&summaries);
    assert_eq!(total, streams.iter().map(|stream| stream.len() as u64).sum::<u64>());
    assert!(frequent.len() <= COUNTERS);
    assert!(frequent.windows(2).all(|pair| pair[0].count >= pair[1].count));
    for Frequent { key, count, error } in &frequent {
        let truth = exact.get(key).copied().unwrap_or(0);
        assert!(count - error <= truth && truth <= *count, "{truth}: {count}, error {error}");
        assert!(*error <= total / COUNTERS as u64, "{error} of {total}");
    }
    for (key, truth) in exact {
        if truth > total / COUNTERS as u64 {
            let is_it = |one: &Frequent| one.key == key;
            assert!(frequent.iter().any(is_it), "{truth} of {total} is missing");
        }
    }
    // A single summary keeps its memory.
    assert!(summaries.iter().all(|one| one.keys.capacity() <= COUNTERS));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_promises_hold_for_random_streams(
        // A few keys are frequent, and many are not; how many differs.
        streams in proptest::collection::vec(
            (1u32..2000, proptest::collection::vec((any::<u32>(), 0u32..4), 0..4000)),
            1..5,
        ),
    ) {
        let streams: Vec<Vec<Vec<u8>>> = streams
            .into_iter()
            .map(|(many, keys)| {
                let key = |(number, kind): (u32, u32)| {
                    let number = if kind == 0 { number % 5 } else { number % many };
                    number.to_le_bytes().to_vec() // with zeros: keys are binary
                };
                keys.into_iter().map(key).collect()
            })
            .collect();
        check(&streams.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }

    #[test]
    fn keys_of_any_bytes_and_lengths_differ(
        keys in proptest::collection::vec(proptest::collection::vec(0u8..2, 60..70), 1..300),
    ) {
        let (hasher, mut distinct) = (RandomState::new(), keys.clone());
        distinct.sort();
        distinct.dedup();
        let made: Vec<Key> = distinct.iter().map(|key| Key::new(key, &hasher)).collect();
        let unique: HashSet<&Key> = made.iter().collect();
        prop_assert_eq!(unique.len(), distinct.len());
        for (key, bytes) in made.iter().zip(&distinct) {
            prop_assert_eq!(key.start(), &bytes[..bytes.len().min(LONGEST)]);
            prop_assert_eq!(key.length(), bytes.len());
        }
    }
}

/// Streams that make a summary replace as many counters as possible.
#[test]
fn the_promises_hold_for_adversarial_streams() {
    let number = |number: usize| number.to_be_bytes().to_vec();
    // Each key once: all counters are replaced again and again.
    let distinct: Vec<Vec<u8>> = (0..10_000).map(number).collect();
    // In turn, one key more than counters: each replaces the next one.
    let turns: Vec<Vec<u8>> = (0..10_000).map(|at| number(at % (COUNTERS + 1))).collect();
    // A frequent key that comes only at the start, and is then replaced as soon as possible; one that comes at the end.
    let frequent = vec![number(77_777); 100];
    let early = [&frequent[..], &distinct[..]].concat();
    let late = [&distinct[..], &frequent[..]].concat();
    // A key a little more frequent than one in 128, hidden among keys that come once.
    let hidden: Vec<Vec<u8>> =
        (0..12_700).map(|at| if at % 127 == 0 { number(88_888) } else { number(at) }).collect();
    let all = [distinct, turns, early, late, hidden];
    for stream in &all {
        check(&[stream]);
    }
    let streams: Vec<&[Vec<u8>]> = all.iter().map(Vec::as_slice).collect();
    check(&streams);
    // The same key at one core, where it is frequent, and at others, where it is not.
    check(&[&vec![number(1); 500], streams[0], streams[1]]);
    check::<Vec<u8>>(&[]);
    check::<Vec<u8>>(&[&[]]);
}

#[test]
fn long_keys_differ_by_their_ends_and_lengths() {
    let hasher = RandomState::new();
    let long = |length: usize, last: u8| {
        let mut key = vec![b'x'; length];
        key[length - 1] = last;
        key
    };
    let all = [long(200, b'a'), long(200, b'b'), long(201, b'x'), long(64, b'x'), long(65, b'x')];
    let (total, frequent) = merged([&summary(&all, &hasher)]);
    assert_eq!((total, frequent.len()), (5, 5));
    assert!(frequent.iter().all(|one| (one.count, one.error) == (1, 0)));
    // A short key whose end is missing is another one than that with zeros.
    assert_ne!(Key::new(b"a", &hasher), Key::new(b"a\0", &hasher));
    let fixed = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(Key::new(b"a", &fixed), Key::new(b"a", &fixed));
}

#[test]
fn a_summary_is_empty_after_it_was_cleared() {
    let hasher = RandomState::new();
    let mut summary = summary(&["a", "b"], &hasher);
    summary.clear();
    assert_eq!(merged([&summary]), (0, vec![]));
    summary.add(Key::new(b"c", &hasher));
    let (total, frequent) = merged([&summary]);
    assert_eq!((total, frequent.len(), frequent[0].key.start()), (1, 1, &b"c"[..]));
}
