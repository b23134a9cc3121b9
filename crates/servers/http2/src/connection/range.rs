//! The ranges of settings.

use std::fmt;

/// A setting that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The name of the field of the configuration.
    pub name: &'static str,
    /// Its value.
    pub value: u32,
    /// The smallest and the largest value.
    pub range: (u32, u32),
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfRange { name, value, range: (least, most) } = self;
        write!(f, "{name} is {value}; expected {least} to {most}")
    }
}

impl std::error::Error for OutOfRange {}

/// Returns the first of these settings that is out of its range: names, values and ranges.
pub(crate) fn check(all: &[(&'static str, u32, (u32, u32))]) -> Result<(), OutOfRange> {
    let wrong = all.iter().find(|(_, value, (least, most))| value < least || value > most);
    wrong.map_or(Ok(()), |&(name, value, range)| Err(OutOfRange { name, value, range }))
}
