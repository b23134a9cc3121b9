//! Texts of the programs, and the line limit, for all styles.

use regatta_proto::line::MAX_LINE;

/// The reply to a first name.
pub(super) const LAST_NAME: &[u8] = b"last name?\n";
/// The reply to an empty name. The client may try again.
pub(super) const EMPTY: &[u8] = b"error: a name is empty\n";

/// Returns whether an incomplete line is over the limit. Its last byte may be the `\r` of the line
/// end.
#[inline]
pub(super) fn too_long(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).len() > MAX_LINE
}
