//! However input is split, events and answers are the same: for valid and for random frames.

use crate::run::{Run, Seen, data, frame, go_away, reset, settings, window_update};
use proptest::{collection::vec, prelude::*, sample::select};
use regatta_http2::{
    ErrorCode,
    client::Config,
    frame::{Kind, flag},
    hpack::{Encoder, Indexing},
};

/// A part of a response, or a frame of the connection.
#[derive(Clone, Debug)]
enum Part {
    Head { stream: u32, value: u8, is_interim: bool, ends: bool },
    Data { stream: u32, content: Vec<u8>, padding: u8, ends: bool },
    Trailers(u32),
    Other(Vec<u8>),
}

fn part() -> impl Strategy<Value = Part> {
    let stream = || (0_u32..6).prop_map(|nth| 2 * nth + 1);
    let other = prop_oneof![
        Just(settings(&[(4, 1000), (3, 50)])),
        Just(settings(&[(4, 70_000)])),
        Just(frame(Kind::PING, 0, 0, b"12345678")),
        Just(frame(Kind(0x55), 0, 3, b"unknown")),
        Just(frame(Kind::PRIORITY, 0, 3, &[0; 5])),
        Just(go_away(9, ErrorCode::NO_ERROR, b"bye")),
        (stream(), 1_u32..1000).prop_map(|(stream, more)| window_update(stream, more)),
        stream().prop_map(|stream| reset(stream, ErrorCode::CANCEL)),
    ];
    prop_oneof![
        3 => (stream(), 0_u8..5, prop::bool::weighted(0.2), prop::bool::weighted(0.2)).prop_map(
            |(stream, value, is_interim, ends)| Part::Head { stream, value, is_interim, ends }
        ),
        4 => (stream(), vec(any::<u8>(), 0..60), select(vec![0, 0, 1, 20]), any::<bool>()).prop_map(
            |(stream, content, padding, ends)| Part::Data { stream, content, padding, ends }
        ),
        1 => stream().prop_map(Part::Trailers),
        2 => other.prop_map(Part::Other),
    ]
}

/// Writes the parts, with blocks that share a table, and whose frames are cut.
fn write(parts: &[Part], cut: usize) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::default(), Vec::new());
    for part in parts {
        let (stream, fields, ends) = match part {
            Part::Head { stream, value, is_interim, ends } => {
                let status = if *is_interim { "103" } else { "200" };
                (stream, vec![(":status", status.to_owned()), ("x", value.to_string())], *ends)
            }
            Part::Trailers(stream) => (stream, vec![("y", "z".to_owned())], true),
            Part::Data { stream, content, padding: 0, ends } => {
                out.extend(data(*stream, content, *ends));
                continue;
            }
            Part::Data { stream, content, padding, ends } => {
                let zeros = vec![0; usize::from(*padding)];
                let payload = [&[*padding], &content[..], &zeros].concat();
                let flags = flag::PADDED | if *ends { flag::END_STREAM } else { 0 };
                out.extend(frame(Kind::DATA, flags, *stream, &payload));
                continue;
            }
            Part::Other(bytes) => {
                out.extend(bytes);
                continue;
            }
        };
        let mut block = Vec::new();
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Incremental));
        encoder.encode(fields, &mut block);
        let (first, second) = block.split_at(block.len().min(cut));
        let ends = if ends { flag::END_STREAM } else { 0 };
        out.extend(frame(Kind::HEADERS, ends, *stream, first));
        out.extend(frame(Kind::CONTINUATION, flag::END_HEADERS, *stream, second));
    }
    out
}

/// Events and answers, when the input comes in pieces of these lengths, repeatedly.
fn served(bytes: &[u8], lengths: &[usize]) -> (Vec<Seen>, Vec<u8>) {
    let config = Config { stream_window: 100, ..Config::CLIENT };
    let mut run = Run::new(config);
    run.feed(&settings(&[]));
    (0..6).for_each(|nth| {
        run.start(nth == 3, if nth == 4 { 10 } else { 0 });
    });
    let (mut rest, mut lengths) = (bytes, lengths.iter().cycle());
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(*lengths.next().expect("a length")));
        run.feed(piece);
        rest = later;
    }
    (run.take(), run.out)
}

proptest! {
    #[test]
    fn parts_of_responses(
        parts in vec(part(), 1..40),
        cut in 0_usize..8,
        lengths in vec(1_usize..50, 1..10),
    ) {
        let bytes = write(&parts, cut);
        let whole = served(&bytes, &[usize::MAX]);
        prop_assert_eq!(&served(&bytes, &lengths), &whole);
        prop_assert_eq!(&served(&bytes, &[1]), &whole);
    }

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..500), lengths in vec(1_usize..50, 1..10)) {
        prop_assert_eq!(served(&bytes, &lengths), served(&bytes, &[usize::MAX]));
    }

    /// Valid headers with any flags and payloads.
    #[test]
    fn random_frames(
        frames in vec((0_u8..11, any::<u8>(), 0_u32..14, vec(any::<u8>(), 0..20)), 1..20),
        lengths in vec(1_usize..50, 1..10),
    ) {
        let write = |(kind, flags, stream, payload): &(u8, u8, u32, Vec<u8>)| {
            frame(Kind(*kind), *flags, *stream, payload)
        };
        let bytes: Vec<u8> = frames.iter().flat_map(write).collect();
        prop_assert_eq!(served(&bytes, &lengths), served(&bytes, &[usize::MAX]));
    }
}

/// The generated parts reach every kind of event.
#[test]
fn a_valid_connection_is_the_same_at_every_pair_of_splits() {
    let parts = [
        Part::Head { stream: 1, value: 1, is_interim: true, ends: false },
        Part::Head { stream: 1, value: 1, is_interim: false, ends: false },
        Part::Other(settings(&[(4, 1000)])),
        Part::Data { stream: 1, content: b"abc".to_vec(), padding: 4, ends: false },
        Part::Trailers(1),
        Part::Head { stream: 3, value: 2, is_interim: false, ends: false },
        Part::Data { stream: 3, content: b"".to_vec(), padding: 1, ends: true },
        Part::Other(go_away(9, ErrorCode::NO_ERROR, b"bye")),
        Part::Other(reset(5, ErrorCode::CANCEL)),
        Part::Other(window_update(0, 9)),
    ];
    let bytes = write(&parts, 2);
    let whole = served(&bytes, &[usize::MAX]);
    assert!(whole.0.len() >= 10, "{:?}", whole.0);
    for first in 1..bytes.len() {
        for second in 1..bytes.len() - first + 1 {
            assert_eq!(served(&bytes, &[first, second, usize::MAX]), whole, "{first} {second}");
        }
    }
}
