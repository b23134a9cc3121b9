//! Protocol violations of a peer.

use super::CloseCode;

/// Why a connection fails (RFC 6455, 7.1.7). A Close frame with this code is sent, and later input
/// is not interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} (close code {code})")]
pub struct Violation {
    /// The status code of the Close frame.
    pub code: CloseCode,
    /// The rule that was violated.
    pub why: &'static str,
}

impl Violation {
    pub(crate) fn protocol(why: &'static str) -> Self {
        Violation { code: CloseCode::PROTOCOL, why }
    }

    pub(crate) const NOT_TEXT: Violation =
        Violation { code: CloseCode::NOT_TEXT, why: "a text message is not UTF-8" };

    pub(crate) const TOO_BIG: Violation =
        Violation { code: CloseCode::TOO_BIG, why: "a message is longer than the limit" };
}
