//! The remarks on the protocol and on request headers in the heading of a race.

use regatta_record::{Asked, Heads};

/// The name of the protocol that the workload was sent over, for people; `None` if it was its usual one.
pub fn protocol_in_words(asked: &Asked) -> Option<&str> {
    match asked.over.as_deref() {
        Some("http2") => Some("HTTP/2"),
        other => other,
    }
}

/// The text after the name of the workload: empty unless the protocol is not its usual one, or all request headers are
/// identical.
pub(crate) fn requests_in_words(asked: &Asked) -> String {
    let over = protocol_in_words(asked).map(|named| format!(" over {named}"));
    let heads = match asked.heads {
        Some(Heads::Identical) => ", with identical headers",
        Some(Heads::Varied) | None => "",
    };
    format!("{}{heads}", over.unwrap_or_default())
}
