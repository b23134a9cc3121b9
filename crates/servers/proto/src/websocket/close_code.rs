//! Status codes of Close frames (RFC 6455, 7.4).

use std::fmt;

/// A status code of a Close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The connection has fulfilled its purpose.
    pub const NORMAL: CloseCode = CloseCode(1000);
    /// The server is stopping, or the user is leaving.
    pub const GOING_AWAY: CloseCode = CloseCode(1001);
    /// The peer violated the protocol.
    pub const PROTOCOL: CloseCode = CloseCode(1002);
    /// The peer sent a type of data that is not accepted.
    pub const UNSUPPORTED: CloseCode = CloseCode(1003);
    /// A text is not UTF-8.
    pub const NOT_TEXT: CloseCode = CloseCode(1007);
    /// The peer violated a rule of the application.
    pub const POLICY: CloseCode = CloseCode(1008);
    /// A message is too long.
    pub const TOO_BIG: CloseCode = CloseCode(1009);
    /// The server failed.
    pub const INTERNAL: CloseCode = CloseCode(1011);
    /// The server is overloaded; try again later.
    pub const TRY_AGAIN_LATER: CloseCode = CloseCode(1013);
}

impl PartialEq<u16> for CloseCode {
    fn eq(&self, other: &u16) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns whether a Close frame may contain this code: those of RFC 6455, 7.4.1 that may be sent,
/// those registered later (1012 to 1014), and those of libraries and applications.
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_equals_its_number_only() {
        assert!(CloseCode::PROTOCOL == 1002 && CloseCode::PROTOCOL != 1000);
    }

    #[test]
    fn allows_exactly_the_codes_that_may_be_sent() {
        let may: Vec<u16> = (0..=u16::MAX).filter(|code| is_close_code(*code)).collect();
        let lone: Vec<u16> = may.iter().copied().filter(|code| *code < 3000).collect();
        assert_eq!(lone, [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014]);
        assert_eq!(may.len(), lone.len() + 2000);
    }
}
