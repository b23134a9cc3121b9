//! However input is split, events and answers are the same: for valid and for random frames.

use super::run::Run;
use crate::{
    parts::{self, Part, at_every_pair_of_splits, frames, lengths, same, stream},
    run::{Outcome, go_away, reset, settings, window_update},
};
use proptest::{collection::vec, prelude::*};
use regatta_http2::{ErrorCode, frame::write, server::Config};
use regatta_testkit::pieces::pieces;

/// The head of a request. It opens the next stream, or is on one that exists.
#[derive(Clone, Debug)]
struct Head {
    opens: bool,
    stream: u32,
    value: u8,
    ends: bool,
}

fn part() -> impl Strategy<Value = Part<Head>> {
    let head = (prop::bool::weighted(0.9), stream(), 0_u8..5, any::<bool>())
        .prop_map(|(opens, stream, value, ends)| Head { opens, stream, value, ends });
    let other = prop_oneof![
        Just(settings(&[(4, 3), (1, 50)])),
        Just(go_away(0, ErrorCode::NO_ERROR, b"bye")),
        (0_u32..6, 1_u32..9).prop_map(|(nth, more)| window_update(nth.saturating_sub(1), more)),
    ];
    parts::part(4, head, other)
}

fn written(parts: &[Part<Head>], cut: usize) -> Vec<u8> {
    let mut next = 1;
    parts::write(parts, cut, |Head { opens, stream, value, ends }| {
        let stream = if *opens { next } else { *stream };
        next = next.max(stream + 2);
        let method = if *ends { "GET" } else { "POST" };
        let fields = [(":method", method), (":scheme", "http"), (":path", "/")];
        let mut fields = fields.map(|(name, value)| (name, value.to_owned())).to_vec();
        fields.push(("x", value.to_string()));
        (stream, fields, *ends)
    })
}

fn served(bytes: &[u8], lengths: &[usize]) -> Outcome {
    let config = Config { stream_window: 100, max_streams: 4, ..Config::SERVER };
    let mut run = Run::new(config);
    run.answer = Some(b"some content".to_vec());
    pieces(bytes, lengths).for_each(|piece| run.feed(piece));
    run.server.end(&mut run.out);
    (run.take(), run.out)
}

/// The preface, SETTINGS with a small window, and bytes.
fn opened(bytes: &[u8]) -> Vec<u8> {
    [write::PREFACE, &settings(&[(4, 5)]), bytes].concat()
}

proptest! {
    #[test]
    fn parts_of_requests(
        parts in vec(part(), 1..40),
        cut in 0_usize..8,
        lengths in lengths(),
    ) {
        let bytes = opened(&written(&parts, cut));
        same(served, &bytes, &lengths)?;
        same(served, &bytes, &[1])?;
    }

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..500), lengths in lengths()) {
        same(served, &opened(&bytes), &lengths)?;
    }

    #[test]
    fn random_frames(bytes in frames(), lengths in lengths()) {
        same(served, &opened(&bytes), &lengths)?;
    }
}

/// The generated parts reach every kind of event.
#[test]
fn a_valid_connection_is_the_same_at_every_pair_of_splits() {
    let head = |ends| Part::Head(Head { opens: true, stream: 0, value: 1, ends });
    let parts = [
        head(true),
        head(false),
        Part::Data { stream: 3, content: b"abc".to_vec(), padding: 4, ends: false },
        Part::Trailers(3),
        head(false),
        Part::Other(settings(&[(4, 100)])),
        Part::Data { stream: 5, content: b"".to_vec(), padding: 1, ends: true },
        head(false),
        Part::Other(reset(7, ErrorCode::CANCEL)),
        Part::Other(window_update(0, 9)),
    ];
    let seen = at_every_pair_of_splits(served, &opened(&written(&parts, 2)), 3);
    assert_eq!(seen.len(), 8, "{seen:?}");
}
