//! What a peer does wrong.

use super::CloseCode;

/// Why a connection fails (RFC 6455, 7.1.7). A Close frame with the code is sent, and nothing that
/// follows is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} (close code {code})")]
pub struct Violation {
    /// The status code for the Close frame.
    pub code: CloseCode,
    /// The rule that was broken.
    pub why: &'static str,
}

impl Violation {
    pub(crate) fn protocol(why: &'static str) -> Self {
        Violation { code: CloseCode::PROTOCOL, why }
    }

    pub(crate) const NOT_TEXT: Violation =
        Violation { code: CloseCode::NOT_TEXT, why: "a text is not UTF-8" };

    pub(crate) const TOO_BIG: Violation =
        Violation { code: CloseCode::TOO_BIG, why: "a message is longer than the limit" };
}
