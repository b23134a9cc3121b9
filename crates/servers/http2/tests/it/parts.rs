//! Random connections, and whether an end makes the same of them in pieces.

use crate::run::{Outcome, Seen, data, frame, reset, settings};
use proptest::{collection::vec, prelude::*, sample::select};
use regatta_http2::{
    ErrorCode,
    frame::{Kind, flag},
    hpack::{Encoder, Indexing},
};
use std::fmt::Debug;

/// A part of a message, or a frame of the connection; `H` is the head of a message.
#[derive(Clone, Debug)]
pub enum Part<H> {
    Head(H),
    Data { stream: u32, content: Vec<u8>, padding: u8, ends: bool },
    Trailers(u32),
    Other(Vec<u8>),
}

/// The stream, the fields and the END_STREAM flag of a HEADERS frame.
pub type Section = (u32, Vec<(&'static str, String)>, bool);

/// The outcome of an end that gets these bytes in pieces of these lengths, repeatedly.
pub type Served = fn(&[u8], &[usize]) -> Outcome;

pub fn stream() -> impl Strategy<Value = u32> {
    (0_u32..6).prop_map(|nth| 2 * nth + 1)
}

/// Parts with these heads, as often as `weight`, and `three` other frames that are for this end.
pub fn part<H: Clone + Debug>(
    weight: u32,
    heads: impl Strategy<Value = H>,
    three: impl Strategy<Value = Vec<u8>>,
) -> impl Strategy<Value = Part<H>> {
    let other = prop_oneof![
        3 => three,
        1 => Just(settings(&[(4, 70_000)])),
        1 => Just(frame(Kind::PING, 0, 0, b"12345678")),
        1 => Just(frame(Kind(0x55), 0, 3, b"unknown")),
        1 => Just(frame(Kind::PRIORITY, 0, 3, &[0; 5])),
        1 => stream().prop_map(|stream| reset(stream, ErrorCode::CANCEL)),
    ];
    prop_oneof![
        weight => heads.prop_map(Part::Head),
        4 => (stream(), vec(any::<u8>(), 0..60), select(vec![0, 0, 1, 20]), any::<bool>()).prop_map(
            |(stream, content, padding, ends)| Part::Data { stream, content, padding, ends }
        ),
        1 => stream().prop_map(Part::Trailers),
        2 => other.prop_map(Part::Other),
    ]
}

/// Frames with valid headers, but any flags and payloads.
pub fn frames() -> impl Strategy<Value = Vec<u8>> {
    let one = (0_u8..11, any::<u8>(), 0_u32..14, vec(any::<u8>(), 0..20));
    let one =
        one.prop_map(|(kind, flags, stream, payload)| frame(Kind(kind), flags, stream, &payload));
    vec(one, 1..20).prop_map(|all| all.concat())
}

/// The lengths of pieces.
pub fn lengths() -> impl Strategy<Value = Vec<usize>> {
    vec(1_usize..50, 1..10)
}

/// Writes the parts, with blocks that share a table, and whose frames are cut.
pub fn write<H>(parts: &[Part<H>], cut: usize, mut head: impl FnMut(&H) -> Section) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::default(), Vec::new());
    for part in parts {
        let (stream, fields, ends) = match part {
            Part::Head(it) => head(it),
            Part::Trailers(stream) => (*stream, vec![("y", "z".to_owned())], true),
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
        out.extend(frame(Kind::HEADERS, ends, stream, first));
        out.extend(frame(Kind::CONTINUATION, flag::END_HEADERS, stream, second));
    }
    out
}

/// Pieces of these lengths have the same effect as all bytes at once.
pub fn same(served: Served, bytes: &[u8], lengths: &[usize]) -> Result<(), TestCaseError> {
    prop_assert_eq!(served(bytes, lengths), served(bytes, &[usize::MAX]));
    Ok(())
}

/// Every pair of splits has the same effect, or every `step`th second one. Returns the events.
pub fn at_every_pair_of_splits(served: Served, bytes: &[u8], step: usize) -> Vec<Seen> {
    let whole = served(bytes, &[usize::MAX]);
    for first in 1..bytes.len() {
        for second in (1..bytes.len() - first + 1).step_by(step) {
            assert_eq!(served(bytes, &[first, second, usize::MAX]), whole, "{first} {second}");
        }
    }
    whole.0
}
