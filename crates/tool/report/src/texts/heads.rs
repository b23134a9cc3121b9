//! The remarks on the protocol and on request headers in the heading of a race.

use regatta_record::{Asked, Heads};

/// The name for people of the protocol that a workload was sent over; `None` if it was its usual one.
pub fn protocol_in_words(over: Option<&str>) -> Option<&str> {
    match over {
        Some("http2") => Some("HTTP/2"),
        other => other,
    }
}

/// ` over ` that protocol; empty if it was the usual one.
pub(crate) fn over_in_words(over: Option<&str>) -> String {
    protocol_in_words(over).map(|named| format!(" over {named}")).unwrap_or_default()
}

/// The text after the name of the workload: empty unless the protocol is not its usual one, or all request headers are
/// identical.
pub(crate) fn requests_in_words(asked: &Asked) -> String {
    let over = over_in_words(asked.over.as_deref());
    let heads = match asked.heads {
        Some(Heads::Identical) => ", with identical headers",
        Some(Heads::Varied) | None => "",
    };
    format!("{over}{heads}")
}
