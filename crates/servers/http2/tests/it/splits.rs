//! However input is split, events and answers are the same: for valid and for random frames.

use crate::{
    parts::{self, Part, at_every_pair_of_splits, frames, lengths, same, stream},
    run::{Outcome, Run, go_away, reset, settings, window_update},
};
use proptest::{collection::vec, prelude::*};
use regatta_http2::{ErrorCode, client::Config};
use regatta_testkit::pieces::pieces;

/// The head of a response.
#[derive(Clone, Debug)]
struct Head {
    stream: u32,
    value: u8,
    is_interim: bool,
    ends: bool,
}

fn part() -> impl Strategy<Value = Part<Head>> {
    let head = (stream(), 0_u8..5, prop::bool::weighted(0.2), prop::bool::weighted(0.2))
        .prop_map(|(stream, value, is_interim, ends)| Head { stream, value, is_interim, ends });
    let other = prop_oneof![
        Just(settings(&[(4, 1000), (3, 50)])),
        Just(go_away(9, ErrorCode::NO_ERROR, b"bye")),
        (stream(), 1_u32..1000).prop_map(|(stream, more)| window_update(stream, more)),
    ];
    parts::part(3, head, other)
}

fn write(parts: &[Part<Head>], cut: usize) -> Vec<u8> {
    parts::write(parts, cut, |Head { stream, value, is_interim, ends }| {
        let status = if *is_interim { "103" } else { "200" };
        (*stream, vec![(":status", status.to_owned()), ("x", value.to_string())], *ends)
    })
}

fn served(bytes: &[u8], lengths: &[usize]) -> Outcome {
    let config = Config { stream_window: 100, ..Config::CLIENT };
    let mut run = Run::new(config);
    run.feed(&settings(&[]));
    (0..6).for_each(|nth| {
        run.start(nth == 3, if nth == 4 { 10 } else { 0 });
    });
    pieces(bytes, lengths).for_each(|piece| run.feed(piece));
    (run.take(), run.out)
}

proptest! {
    #[test]
    fn parts_of_responses(
        parts in vec(part(), 1..40),
        cut in 0_usize..8,
        lengths in lengths(),
    ) {
        let bytes = write(&parts, cut);
        same(served, &bytes, &lengths)?;
        same(served, &bytes, &[1])?;
    }

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..500), lengths in lengths()) {
        same(served, &bytes, &lengths)?;
    }

    #[test]
    fn random_frames(bytes in frames(), lengths in lengths()) {
        same(served, &bytes, &lengths)?;
    }
}

/// The generated parts reach every kind of event.
#[test]
fn a_valid_connection_is_the_same_at_every_pair_of_splits() {
    let head =
        |stream, value, is_interim| Part::Head(Head { stream, value, is_interim, ends: false });
    let parts = [
        head(1, 1, true),
        head(1, 1, false),
        Part::Other(settings(&[(4, 1000)])),
        Part::Data { stream: 1, content: b"abc".to_vec(), padding: 4, ends: false },
        Part::Trailers(1),
        head(3, 2, false),
        Part::Data { stream: 3, content: b"".to_vec(), padding: 1, ends: true },
        Part::Other(go_away(9, ErrorCode::NO_ERROR, b"bye")),
        Part::Other(reset(5, ErrorCode::CANCEL)),
        Part::Other(window_update(0, 9)),
    ];
    let seen = at_every_pair_of_splits(served, &write(&parts, 2), 1);
    assert!(seen.len() >= 10, "{seen:?}");
}
