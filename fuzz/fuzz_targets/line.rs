//! The line codec and `double`: however the input is cut, the replies are the same, and the buffers for
//! input and output stay bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_proto::line::MAX_FRAME;
use regatta_service::{Halt, Now, REPLY_FULL, answer, double::{Double, Lines}};
use std::time::Instant;

/// Returns all replies to `pieces`, delivered one after another.
fn replies<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let now = Now { instant: Instant::now(), unix_s: 0 };
    let (mut held, mut all, mut reply) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let (consumed, halt) = answer(&mut Double, &mut Lines, &mut (), now, &held, &mut reply);
            assert!(reply.len() < REPLY_FULL + 1024);
            held.drain(..consumed);
            all.append(&mut reply);
            match halt {
                Halt::Full => continue,
                Halt::Closing | Halt::ClosingByClient => return all,
                Halt::NeedsInput => break,
            }
        }
        assert!(held.len() < MAX_FRAME);
    }
    all
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let whole = replies(std::iter::once(bytes));
    assert_eq!(whole, replies(bytes.chunks(usize::from(cut) + 1)));
});
