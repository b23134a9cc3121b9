//! permessage-deflate (RFC 7692) of a hub: a broadcast is compressed once for all members.

use regatta_proto::websocket::{Deflate, DeflateSettings, Frame, Role};
use std::cell::RefCell;

/// What a hub requires of a client that offers compression: no context takeover in either
/// direction. So one compressed message suits all members, and no history is kept per member.
pub(super) const WANTED: DeflateSettings = DeflateSettings {
    server_no_context_takeover: true,
    client_no_context_takeover: true,
    server_max_window_bits: 15,
    client_max_window_bits: 15,
};
/// Payloads smaller than this, in bytes, are not compressed: they would hardly become shorter.
const LEAST: usize = 128;

thread_local! {
    /// Needs a quarter of a megabyte, which a thread keeps from its first compressed message on. It
    /// keeps no state between messages, so all members of a thread share it.
    static DEFLATE: RefCell<Deflate> = RefCell::new(Deflate::new(Role::Client, WANTED));
}

/// Returns whether a member can read messages compressed for all. It cannot with a smaller window.
pub(super) fn is_shared(agreed: DeflateSettings) -> bool {
    agreed.server_max_window_bits >= WANTED.server_max_window_bits
}

/// Returns the compressed frame of a complete message; `None` if the message is shorter than
/// [`LEAST`], or would not become shorter.
pub(super) fn compressed(frame: Frame<'_>) -> Option<Vec<u8>> {
    if frame.payload.len() < LEAST {
        return None;
    }
    let mut payload = Vec::new();
    DEFLATE.with_borrow_mut(|deflate| deflate.message(frame.payload, &mut payload));
    if payload.len() >= frame.payload.len() {
        return None;
    }
    let mut out = Vec::with_capacity(payload.len() + Frame::MAX_HEADER);
    Frame { compressed: true, payload: &payload, ..frame }.write(&mut out);
    Some(out)
}

/// Appends a message unchanged, compressed if the client accepts that and it becomes shorter.
pub(super) fn send_back(frame: Frame<'_>, inflates: bool, out: &mut Vec<u8>) {
    match inflates.then(|| compressed(frame)).flatten() {
        Some(compressed) => out.extend_from_slice(&compressed),
        None => frame.write(out),
    }
}
