//! Frames → bytes, appended to a buffer.

use super::{
    MAX_MAX_SIZE,
    header::{Header, Kind, flag},
};
use crate::code::ErrorCode;

/// What a client sends first (RFC 9113, 3.4). A SETTINGS frame follows.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// SETTINGS with these numbers and values.
pub fn settings(out: &mut Vec<u8>, values: &[(u16, u32)]) {
    let length = values.len() as u32 * 6;
    Header { length, kind: Kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (number, value) in values {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The acknowledgment of a SETTINGS frame.
pub fn settings_ack(out: &mut Vec<u8>) {
    Header { length: 0, kind: Kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
}

/// The answer to a PING frame with this payload.
pub fn ping_ack(out: &mut Vec<u8>, payload: &[u8; 8]) {
    Header { length: 8, kind: Kind::PING, flags: flag::ACK, stream: 0 }.write(out);
    out.extend_from_slice(payload);
}

/// RST_STREAM.
pub fn reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    Header { length: 4, kind: Kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// GOAWAY without debug data.
pub fn go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    Header { length: 8, kind: Kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// WINDOW_UPDATE of a stream, or of the connection (0).
pub fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    Header { length: 4, kind: Kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// HEADERS with a field block, and CONTINUATION frames if it is longer than `max_frame` bytes (at least
/// 1). Calls `starts` with the position of each frame in `out`.
pub fn headers(
    out: &mut Vec<u8>,
    mut starts: impl FnMut(usize),
    (stream, ends): (u32, bool),
    block: &[u8],
    max_frame: u32,
) {
    let ends = if ends { flag::END_STREAM } else { 0 };
    let (mut rest, mut kind, mut flags) = (block, Kind::HEADERS, ends);
    loop {
        let (part, later) = split(rest, max_frame);
        rest = later;
        flags |= if rest.is_empty() { flag::END_HEADERS } else { 0 };
        starts(out.len());
        Header { length: part.len() as u32, kind, flags, stream }.write(out);
        out.extend_from_slice(part);
        if rest.is_empty() {
            return;
        }
        (kind, flags) = (Kind::CONTINUATION, 0);
    }
}

/// DATA with content, in frames of at most `max_frame` bytes (at least 1). Empty content is one frame.
/// `ends`: whether the last one ends the stream. Calls `starts` with the position of each frame in `out`.
pub fn data(
    out: &mut Vec<u8>,
    mut starts: impl FnMut(usize),
    (stream, ends): (u32, bool),
    content: &[u8],
    max_frame: u32,
) {
    let mut rest = content;
    loop {
        let (part, later) = split(rest, max_frame);
        rest = later;
        let flags = if ends && rest.is_empty() { flag::END_STREAM } else { 0 };
        starts(out.len());
        Header { length: part.len() as u32, kind: Kind::DATA, flags, stream }.write(out);
        out.extend_from_slice(part);
        if rest.is_empty() {
            return;
        }
    }
}

fn split(bytes: &[u8], max_frame: u32) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(max_frame.clamp(1, MAX_MAX_SIZE) as usize))
}
