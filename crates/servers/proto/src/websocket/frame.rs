//! Frames (RFC 6455, 5.2): parsing of headers, and writing of frames.

use super::{Violation, mask};

/// Maximum payload of a control frame in bytes (RFC 6455, 5.5).
pub const MAX_CONTROL: usize = 125;

/// The side that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads frames from a client, which are masked.
    Server,
    /// Reads frames from a server, which are not masked.
    Client,
}

/// The type of a frame (RFC 6455, 11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// The next fragment of a message.
    Continuation,
    /// The first fragment of a text message.
    Text,
    /// The first fragment of a binary message.
    Binary,
    /// The close of the connection.
    Close,
    /// A request for a pong.
    Ping,
    /// The answer to a ping, or a keep-alive.
    Pong,
}

impl Opcode {
    fn of(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    /// Returns whether it may occur between the fragments of a message.
    pub(super) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The last fragment of its message.
    pub fin: bool,
    /// The message is compressed (RFC 7692, 6).
    pub compressed: bool,
    pub opcode: Opcode,
    pub mask: Option<[u8; 4]>,
    /// Payload length in bytes.
    pub length: u64,
}

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const RSV2_AND_3: u8 = 0x30;
const MASKED: u8 = 0x80;

impl Header {
    /// Parses the header at the front of `input`. Returns it and its length in bytes; `None` if it
    /// is incomplete. A violation is reported as soon as its byte has arrived. `compresses`:
    /// permessage-deflate was negotiated.
    #[inline]
    pub(super) fn read(
        input: &[u8],
        reader: Role,
        compresses: bool,
    ) -> Result<Option<(Header, usize)>, Violation> {
        let Some(&first) = input.first() else { return Ok(None) };
        let Some(opcode) = Opcode::of(first & 0x0f) else {
            return Err(Violation::protocol("a frame has a reserved opcode"));
        };
        let (fin, compressed) = (first & FIN != 0, first & RSV1 != 0);
        let may_compress = compresses && matches!(opcode, Opcode::Text | Opcode::Binary);
        if first & RSV2_AND_3 != 0 || compressed && !may_compress {
            return Err(Violation::protocol("a frame has a reserved bit set"));
        }
        if opcode.is_control() && !fin {
            return Err(Violation::protocol("a control frame is fragmented"));
        }
        let Some(&second) = input.get(1) else { return Ok(None) };
        let masked = second & MASKED != 0;
        match reader {
            Role::Server if !masked => {
                return Err(Violation::protocol("a frame from a client is not masked"));
            }
            Role::Client if masked => {
                return Err(Violation::protocol("a frame from a server is masked"));
            }
            _ => {}
        }
        let short = second & 0x7f;
        if opcode.is_control() && usize::from(short) > MAX_CONTROL {
            return Err(Violation::protocol("a control frame is longer than 125 bytes"));
        }
        let (length, at) = match short {
            126 => match input.get(2..).and_then(<[u8]>::first_chunk) {
                Some(bytes) => (u64::from(u16::from_be_bytes(*bytes)), 4),
                None => return Ok(None),
            },
            127 => match input.get(2..).and_then(<[u8]>::first_chunk) {
                Some(bytes) => (u64::from_be_bytes(*bytes), 10),
                None => return Ok(None),
            },
            short => (u64::from(short), 2),
        };
        // RFC 6455, 5.2: the shortest encoding must be used, and the highest bit is 0.
        let least = if at == 4 { 126 } else { 1 << 16 };
        if at > 2 && length < least || length >> 63 != 0 {
            return Err(Violation::protocol(
                "a frame's length is not encoded in the shortest form",
            ));
        }
        if !masked {
            let mask = None;
            return Ok(Some((Header { fin, compressed, opcode, mask, length }, at)));
        }
        let Some(mask) = input.get(at..).and_then(<[u8]>::first_chunk) else { return Ok(None) };
        Ok(Some((Header { fin, compressed, opcode, mask: Some(*mask), length }, at + 4)))
    }
}

/// A frame to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The type.
    pub opcode: Opcode,
    /// The last fragment of its message. Always set for control frames.
    pub fin: bool,
    /// Its message is compressed. Only allowed on the first fragment, and if negotiated.
    pub compressed: bool,
    /// The payload; of a control frame at most [`MAX_CONTROL`] bytes.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// A complete text message. The caller guarantees that it is UTF-8.
    pub fn text(payload: &'a [u8]) -> Self {
        Frame { opcode: Opcode::Text, fin: true, compressed: false, payload }
    }

    /// A complete binary message.
    pub fn binary(payload: &'a [u8]) -> Self {
        Frame { opcode: Opcode::Binary, ..Frame::text(payload) }
    }

    /// A ping.
    pub fn ping(payload: &'a [u8]) -> Self {
        Frame { opcode: Opcode::Ping, ..Frame::text(payload) }
    }

    /// A pong.
    pub fn pong(payload: &'a [u8]) -> Self {
        Frame { opcode: Opcode::Pong, ..Frame::text(payload) }
    }

    /// Maximum length of a header in bytes.
    pub const MAX_HEADER: usize = 14;

    /// Appends the frame without a mask, as a server sends it.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(Self::MAX_HEADER + self.payload.len());
        self.write_header(0, out);
        out.extend_from_slice(self.payload);
    }

    /// Appends the frame with a mask, as a client sends it. A real client uses a new, unpredictable
    /// mask for each frame (RFC 6455, 5.3).
    #[inline]
    pub fn write_masked(&self, mask: [u8; 4], out: &mut Vec<u8>) {
        out.reserve(Self::MAX_HEADER + self.payload.len());
        self.write_header(MASKED, out);
        out.extend_from_slice(&mask);
        let start = out.len();
        out.extend_from_slice(self.payload);
        mask::apply(mask, 0, &mut out[start..]);
    }

    /// Appends the header of a complete text message of this many bytes, as a server sends it. The
    /// text must follow.
    #[inline]
    pub fn write_text_header(length: usize, out: &mut Vec<u8>) {
        out.reserve(Self::MAX_HEADER + length);
        write_header(FIN | Opcode::Text.bits(), 0, length, out);
    }

    #[inline]
    fn write_header(&self, masked: u8, out: &mut Vec<u8>) {
        debug_assert!(
            !self.opcode.is_control() || self.fin && self.payload.len() <= MAX_CONTROL,
            "a control frame must be short and not fragmented"
        );
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let first = bit(self.fin, FIN) | bit(self.compressed, RSV1) | self.opcode.bits();
        write_header(first, masked, self.payload.len(), out);
    }
}

/// Appends the first byte of a header, and the length in its shortest encoding (RFC 6455, 5.2).
#[inline]
fn write_header(first: u8, masked: u8, length: usize, out: &mut Vec<u8>) {
    out.push(first);
    match length {
        0..126 => out.push(masked | length as u8),
        126..0x1_0000 => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<(Header, usize)>, Violation> {
        Header::read(bytes, Role::Client, false)
    }

    #[test]
    fn each_length_has_one_encoding() {
        for (length, header) in [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let payload = vec![7; length];
            let mut out = Vec::new();
            Frame::binary(&payload).write(&mut out);
            assert_eq!(out.len(), header + length);
            let (read, at) = read(&out).unwrap().unwrap();
            assert_eq!((read.length, at, read.fin), (length as u64, header, true));
            for cut in 0..header {
                assert_eq!(self::read(&out[..cut]), Ok(None), "{cut} of {header}");
            }
        }
        let too_long_a_form = [&[0x82, 126, 0, 125][..], &[0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255]];
        for wrong in too_long_a_form.into_iter().chain([&[0x82, 127, 128, 0, 0, 0, 0, 1, 0, 0][..]])
        {
            assert_eq!(read(wrong).unwrap_err().code, 1002, "{wrong:?}");
        }
    }

    #[test]
    fn violations_are_reported_at_their_byte() {
        for (bytes, role) in [
            (&[0x83][..], Role::Client),   // a reserved opcode
            (&[0x8b], Role::Client),       // another
            (&[0x91], Role::Client),       // RSV3
            (&[0xa1], Role::Client),       // RSV2
            (&[0xc1], Role::Client),       // RSV1 that was not negotiated
            (&[0x09], Role::Client),       // a fragmented ping
            (&[0x89, 126], Role::Client),  // a long ping
            (&[0x81, 0x80], Role::Client), // a masked frame of a server
            (&[0x81, 0x00], Role::Server), // an unmasked frame of a client
        ] {
            let wrong = Header::read(bytes, role, false).unwrap_err();
            assert_eq!(wrong.code, 1002, "{bytes:x?}");
            let before = &bytes[..bytes.len() - 1];
            assert_eq!(Header::read(before, role, false), Ok(None), "{bytes:x?}");
        }
    }

    #[test]
    fn only_the_first_frame_of_a_message_is_marked_as_compressed() {
        let read = |first| Header::read(&[first, 0], Role::Client, true);
        assert!(read(0xc1).unwrap().unwrap().0.compressed);
        for wrong in [0xc0, 0xc8, 0xc9, 0xca] {
            assert_eq!(read(wrong).unwrap_err().code, 1002);
        }
    }

    #[test]
    fn frames_match_the_examples_of_the_rfc() {
        // RFC 6455, 5.7.
        let mut out = Vec::new();
        Frame::text(b"Hello").write(&mut out);
        assert_eq!(out, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        out.clear();
        Frame::text(b"Hello").write_masked([0x37, 0xfa, 0x21, 0x3d], &mut out);
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(out, masked);
        let (header, at) = Header::read(&out, Role::Server, false).unwrap().unwrap();
        assert_eq!((header.mask, header.length, at), (Some([0x37, 0xfa, 0x21, 0x3d]), 5, 6));
    }
}
