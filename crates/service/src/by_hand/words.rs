//! What the programs say, and how long a line may be, in every style.

use regatta_proto::line::MAX_LINE;

/// Asked after a first name.
pub(super) const LAST_NAME: &[u8] = b"last name?\n";
/// The reply to an empty name; the question stands.
pub(super) const EMPTY: &[u8] = b"error: a name is empty\n";

/// Whether what was read of a line, its end still missing, is over the limit. The last byte may be
/// the `\r` of that end.
#[inline]
pub(super) fn too_long(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).len() > MAX_LINE
}
