//! A second of the time of day, in the two forms that replies need.

use regatta_proto::http1::Date;

/// A second of the time of day.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Seconds since the beginning of 1970, UTC.
    pub unix_s: u64,
    /// The same as a Date field.
    pub date: Date,
}

impl Moment {
    /// The moment of that second.
    pub fn at(unix_s: u64) -> Self {
        Moment { unix_s, date: Date::at(unix_s) }
    }

    /// Moves to that second. Formats it only if it is another one.
    #[inline]
    pub fn move_to(&mut self, unix_s: u64) -> &Self {
        if self.unix_s != unix_s {
            *self = Moment::at(unix_s);
        }
        self
    }
}

impl Default for Moment {
    /// The beginning of 1970.
    fn default() -> Self {
        Moment::at(0)
    }
}
