//! Texts of the dialogue, for all styles, and the line limit, for the styles that read lines from a
//! stream.

use regatta_proto::line::MAX_LINE;

/// The reply to a first name.
pub(super) const LAST_NAME: &[u8] = b"last name?\n";
/// The reply to an empty name. The client may try again.
pub(super) const EMPTY: &[u8] = b"error: a name is empty\n";

/// Returns whether a line without its `\n` is over the limit, even if it is incomplete. Its last byte
/// may be the `\r` of the line end.
#[inline]
pub(super) fn too_long(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).len() > MAX_LINE
}
