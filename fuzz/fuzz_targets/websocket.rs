//! The WebSocket decoder: however the input is cut, the messages are the same, and its buffers stay
//! bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_proto::websocket::{DeflateSettings, Decoder, Frame, MAX_CONTROL, Role};

const LIMIT: usize = 1000;

/// Decodes `pieces`: returns each event as text, and the code of a violation.
fn events<'a>(
    mut decoder: Decoder,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<String>, Option<u16>) {
    let (mut held, mut all) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let (taken, event) = match decoder.next(&mut held) {
                Ok((taken, event)) => (taken, event.map(|event| format!("{event:?}"))),
                Err(violation) => return (all, Some(violation.code.0)),
            };
            let goes_on = taken > 0 || event.is_some();
            held.drain(..taken);
            all.extend(event);
            assert!(decoder.held() <= 4 * LIMIT + 4096);
            if !goes_on {
                break;
            }
        }
        assert!(held.len() <= Frame::MAX_HEADER + MAX_CONTROL);
    }
    (all, None)
}

fuzz_target!(|input: (u8, bool, bool, &[u8])| {
    let (cut, client, deflates, bytes) = input;
    let decoder = || {
        let role = if client { Role::Client } else { Role::Server };
        let decoder = Decoder::new(role, LIMIT);
        if deflates { decoder.inflating(DeflateSettings::default()) } else { decoder }
    };
    let whole = events(decoder(), std::iter::once(bytes));
    let cut = events(decoder(), bytes.chunks(usize::from(cut) + 1));
    // Invalid UTF-8 and data that cannot be inflated are refused as soon as they are detected, which may
    // be earlier when the input is cut.
    match (cut.1, whole.1) {
        (Some(_), None) => assert!(whole.0.starts_with(&cut.0)),
        (mine, theirs) if mine != theirs => assert!(mine.is_some() && whole.0.starts_with(&cut.0)),
        _ => assert_eq!(whole, cut),
    }
});
