//! Close frames (RFC 6455, 5.5.1).

use super::{CloseCode, Frame, MAX_CONTROL, Opcode, Violation, is_close_code};

impl CloseCode {
    /// Appends a Close frame of a server. A reason that is too long is cut at a character boundary.
    pub fn write(self, reason: &str, out: &mut Vec<u8>) {
        let (payload, length) = self.payload(reason);
        Frame { opcode: Opcode::Close, ..Frame::text(&payload[..length]) }.write(out);
    }

    /// Appends a Close frame of a client.
    pub fn write_masked(self, reason: &str, mask: [u8; 4], out: &mut Vec<u8>) {
        let (payload, length) = self.payload(reason);
        Frame { opcode: Opcode::Close, ..Frame::text(&payload[..length]) }.write_masked(mask, out);
    }

    fn payload(self, reason: &str) -> ([u8; MAX_CONTROL], usize) {
        let mut payload = [0; MAX_CONTROL];
        payload[..2].copy_from_slice(&self.0.to_be_bytes());
        let reason = &reason[..reason.floor_char_boundary(MAX_CONTROL - 2)];
        payload[2..2 + reason.len()].copy_from_slice(reason.as_bytes());
        (payload, 2 + reason.len())
    }
}

/// Parses the code and the reason of a Close frame. Returns `None` if it has neither.
pub(super) fn read(payload: &[u8]) -> Result<Option<(CloseCode, &str)>, Violation> {
    let (code, reason) = match payload {
        [] => return Ok(None),
        [_] => return Err(Violation::protocol("a Close frame has half a status code")),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
    };
    if !is_close_code(code) {
        return Err(Violation::protocol("a Close frame has a status code that must not be sent"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Violation::NOT_TEXT)?;
    Ok(Some((CloseCode(code), reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_written_close_frame() {
        let mut out = Vec::new();
        CloseCode::GOING_AWAY.write("until tomorrow", &mut out);
        assert_eq!(&out[..4], [0x88, 16, 3, 0xe9]);
        assert_eq!(read(&out[2..]), Ok(Some((CloseCode(1001), "until tomorrow"))));
        out.clear();
        CloseCode::NORMAL.write(&"€".repeat(50), &mut out);
        assert_eq!(read(&out[2..]).unwrap().unwrap().1, "€".repeat(41), "cut at a boundary");
        out.clear();
        CloseCode::NORMAL.write_masked("x", [1, 2, 3, 4], &mut out);
        assert_eq!(out, [0x88, 0x83, 1, 2, 3, 4, 2, 0xea, b'x' ^ 3]);
    }

    #[test]
    fn refuses_invalid_close_frames() {
        assert_eq!(read(b""), Ok(None));
        assert_eq!(read(b"\x03").unwrap_err().code, 1002);
        for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
            assert_eq!(read(&code.to_be_bytes()).unwrap_err().code, 1002, "{code}");
        }
        assert_eq!(read(b"\x03\xe8\xff").unwrap_err().code, 1007);
    }
}
