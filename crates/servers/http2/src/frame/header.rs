//! Frame headers (RFC 9113, 4.1).

use std::fmt;

/// The 9 bytes at the start of each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload, in bytes, below 2²⁴.
    pub length: u32,
    /// The type of the frame.
    pub kind: Kind,
    /// A set of [`flag`]s.
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
}

/// The type of a frame. Unknown types are permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u8);

#[allow(missing_docs)] // the names are those of the RFC
impl Kind {
    pub const DATA: Kind = Kind(0);
    pub const HEADERS: Kind = Kind(1);
    pub const PRIORITY: Kind = Kind(2);
    pub const RST_STREAM: Kind = Kind(3);
    pub const SETTINGS: Kind = Kind(4);
    pub const PUSH_PROMISE: Kind = Kind(5);
    pub const PING: Kind = Kind(6);
    pub const GOAWAY: Kind = Kind(7);
    pub const WINDOW_UPDATE: Kind = Kind(8);
    pub const CONTINUATION: Kind = Kind(9);
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 10] = [
            "DATA",
            "HEADERS",
            "PRIORITY",
            "RST_STREAM",
            "SETTINGS",
            "PUSH_PROMISE",
            "PING",
            "GOAWAY",
            "WINDOW_UPDATE",
            "CONTINUATION",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown type {:#x}", self.0),
        }
    }
}

/// Flags of frames.
#[allow(missing_docs)] // the names are those of the RFC
pub mod flag {
    /// On SETTINGS and PING.
    pub const ACK: u8 = 0x1;
    /// On DATA and HEADERS.
    pub const END_STREAM: u8 = 0x1;
    /// On HEADERS and CONTINUATION.
    pub const END_HEADERS: u8 = 0x4;
    /// On DATA and HEADERS.
    pub const PADDED: u8 = 0x8;
    /// On HEADERS.
    pub const PRIORITY: u8 = 0x20;
}

impl Header {
    /// Length in bytes.
    pub const SIZE: usize = 9;

    /// Reads a header. The reserved bit is ignored.
    #[inline]
    pub fn read([a, b, c, kind, flags, s0, s1, s2, s3]: &[u8; Header::SIZE]) -> Header {
        Header {
            length: u32::from_be_bytes([0, *a, *b, *c]),
            kind: Kind(*kind),
            flags: *flags,
            stream: u32::from_be_bytes([s0 & 0x7f, *s1, *s2, *s3]),
        }
    }

    /// Appends the header.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        let ([_, a, b, c], [s0, s1, s2, s3]) =
            (self.length.to_be_bytes(), self.stream.to_be_bytes());
        out.extend_from_slice(&[a, b, c, self.kind.0, self.flags, s0, s1, s2, s3]);
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { length, kind, flags, stream } = self;
        write!(f, "frame {kind}, flags {flags:#x}, stream {stream}, {length} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_written_and_its_reserved_bit_is_ignored() {
        let header = Header {
            length: 0x01_0203,
            kind: Kind::HEADERS,
            flags: flag::END_HEADERS | flag::PADDED,
            stream: 0x7fff_fffd,
        };
        let mut out = Vec::new();
        header.write(&mut out);
        assert_eq!(out, [1, 2, 3, 1, 0xc, 0x7f, 0xff, 0xff, 0xfd]);
        out[5] |= 0x80;
        let bytes: &[u8; 9] = out.first_chunk().unwrap();
        assert_eq!(Header::read(bytes), header);
        assert!(header.has(flag::PADDED) && !header.has(flag::END_STREAM));
        let text = "frame HEADERS, flags 0xc, stream 2147483645, 66051 bytes";
        assert_eq!(header.to_string(), text);
        assert_eq!(Kind(0x99).to_string(), "unknown type 0x99");
    }
}
