//! What an end announces, and how many streams it has.

use crate::window::{INITIAL_WINDOW, MAX_WINDOW};
use std::fmt;

/// Settings of an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of open streams, 1 to 65,536. A client opens no more, and its server may permit fewer; a
    /// server refuses others.
    pub max_streams: u32,
    /// The receive window of each stream, in bytes, 1 to 2³¹ - 1.
    pub stream_window: u32,
    /// The receive window of the connection, in bytes, 65,535 to 2³¹ - 1: it starts at 65,535 and cannot be
    /// reduced (RFC 9113, 6.9.2).
    pub connection_window: u32,
    /// Maximum size of the dynamic table for what is received, in bytes, 0 to 65,536.
    pub header_table: u32,
    /// Maximum size of the fields of a received request or response, in bytes, 1 to 1,048,576.
    pub header_list: u32,
}

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

impl Config {
    /// A client: 100 streams, windows of 1 GiB, a table of 4,096 bytes, and fields of up to 64 KiB.
    pub const CLIENT: Config = Config {
        max_streams: 100,
        stream_window: 1 << 30,
        connection_window: 1 << 30,
        header_table: 4096,
        header_list: 64 * 1024,
    };

    /// A server: 256 streams, windows of 64 KiB and 1 MiB, a table of 4,096 bytes, and fields of up to 16 KiB.
    pub const SERVER: Config = Config {
        max_streams: 256,
        stream_window: 1 << 16,
        connection_window: 1 << 20,
        header_table: 4096,
        header_list: 16 * 1024,
    };

    /// Returns the first setting that is out of its range.
    pub(crate) fn check(&self) -> Result<(), OutOfRange> {
        let all = [
            ("max_streams", self.max_streams, (1, 1 << 16)),
            ("stream_window", self.stream_window, (1, MAX_WINDOW)),
            ("connection_window", self.connection_window, (INITIAL_WINDOW, MAX_WINDOW)),
            ("header_table", self.header_table, (0, 1 << 16)),
            ("header_list", self.header_list, (1, 1 << 20)),
        ];
        let wrong = all.iter().find(|(_, value, (least, most))| value < least || value > most);
        wrong.map_or(Ok(()), |&(name, value, range)| Err(OutOfRange { name, value, range }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_is_checked_and_named() {
        let config = Config::CLIENT;
        assert_eq!((config.check(), Config::SERVER.check()), (Ok(()), Ok(())));
        for (config, message) in [
            (Config { max_streams: 0, ..config }, "max_streams is 0; expected 1 to 65536"),
            (Config { max_streams: 65_537, ..config }, "max_streams is 65537; expected 1 to 65536"),
            (Config { stream_window: 0, ..config }, "stream_window is 0; expected 1 to 2147483647"),
            (
                Config { stream_window: 1 << 31, ..config },
                "stream_window is 2147483648; expected 1 to 2147483647",
            ),
            (
                Config { connection_window: 65_534, ..config },
                "connection_window is 65534; expected 65535 to 2147483647",
            ),
            (
                Config { header_table: 65_537, ..config },
                "header_table is 65537; expected 0 to 65536",
            ),
            (Config { header_list: 0, ..config }, "header_list is 0; expected 1 to 1048576"),
        ] {
            assert_eq!(config.check().unwrap_err().to_string(), message);
        }
    }
}
