//! permessage-deflate (RFC 7692) of a hub: a broadcast is compressed once, and shared.

use regatta_proto::websocket::{Deflate, DeflateSettings, Frame, Role};
use std::cell::RefCell;

/// What a hub wants of a client that offers to compress: each message by itself, both ways. So one
/// compressed message is right for all of them, and nobody's history is kept.
pub(super) const WANTED: DeflateSettings = DeflateSettings {
    server_no_context_takeover: true,
    client_no_context_takeover: true,
    server_max_window_bits: 15,
    client_max_window_bits: 15,
};
/// Payloads below so many bytes are sent as they are: they would hardly become shorter.
const LEAST: usize = 128;

thread_local! {
    /// Its memory, a quarter of a megabyte, is needed while a message is compressed; nothing else of a
    /// message stays in it.
    static DEFLATE: RefCell<Deflate> = RefCell::new(Deflate::new(Role::Client, WANTED));
}

/// Whether a member that has agreed to this reads what is compressed for all: a smaller window could not.
pub(super) fn is_shared(agreed: DeflateSettings) -> bool {
    agreed.server_max_window_bits >= WANTED.server_max_window_bits
}

/// The frame of a whole message, compressed; `None` where that would not be shorter.
pub(super) fn compressed(frame: Frame<'_>) -> Option<Vec<u8>> {
    if frame.payload.len() < LEAST {
        return None;
    }
    let mut payload = Vec::new();
    DEFLATE.with_borrow_mut(|deflate| deflate.message(frame.payload, &mut payload));
    if payload.len() >= frame.payload.len() {
        return None;
    }
    let mut out = Vec::with_capacity(payload.len() + Frame::MOST_HEADER);
    Frame { compressed: true, payload: &payload, ..frame }.write(&mut out);
    Some(out)
}
