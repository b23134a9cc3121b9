//! The Date field. A caller with a clock formats it once per second.

use std::{
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

/// A complete Date field (RFC 9110, 6.6.1), ready to be copied into replies. It stores its second,
/// so comparing two dates compares two numbers.
#[derive(Clone, Copy, Debug)]
pub struct Date {
    unix_s: u64,
    field: [u8; Date::LEN],
}

impl Date {
    const LEN: usize = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".len();

    /// The latest second that can be represented, the last of the year 9999.
    pub const MAX_S: u64 = 253_402_300_799;

    /// The field for a Unix time in seconds. Times after [`Date::MAX_S`] are written as that
    /// second.
    pub fn at(unix_s: u64) -> Self {
        let unix_s = unix_s.min(Date::MAX_S);
        let time = UNIX_EPOCH + Duration::from_secs(unix_s);
        let mut field = [b' '; Date::LEN];
        // The length is the same for all times, so it fits.
        let fits = write!(&mut field[..], "Date: {}\r\n", httpdate::HttpDate::from(time));
        debug_assert!(fits.is_ok());
        Date { unix_s, field }
    }

    /// The Unix time in seconds.
    #[inline]
    pub fn unix_s(&self) -> u64 {
        self.unix_s
    }

    /// The value of the field.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.field["Date: ".len()..Date::LEN - "\r\n".len()]
    }

    /// The field with its line end.
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8; Date::LEN] {
        &self.field
    }
}

impl PartialEq for Date {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.unix_s == other.unix_s
    }
}

impl Eq for Date {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_dates_have_the_same_length() {
        for (unix_s, expected) in [
            (0, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"),
            (784_111_777, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            (951_782_400, "Date: Tue, 29 Feb 2000 00:00:00 GMT\r\n"),
            (Date::MAX_S, "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n"),
            (u64::MAX, "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n"),
        ] {
            assert_eq!(Date::at(unix_s).as_bytes(), expected.as_bytes());
            assert_eq!(Date::at(unix_s).unix_s(), unix_s.min(Date::MAX_S));
        }
        assert_eq!(Date::at(1), Date::at(1));
        assert_ne!(Date::at(1), Date::at(2));
    }
}
