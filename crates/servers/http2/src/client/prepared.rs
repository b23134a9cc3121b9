//! Requests that are compiled before a run.

use crate::frame::write;

/// The frames of a request: HEADERS, CONTINUATION and DATA. Only the stream is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    content: u64,
}

impl Prepared {
    /// Where the stream is in a frame, which starts at 0.
    const STREAM_AT: usize = 5;

    /// Compiles a request with this field block and content, in frames of at most `max_frame` bytes.
    /// 16,384 is always permitted.
    pub fn new(block: &[u8], content: &[u8], max_frame: u32) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        let mut push = |start| starts.push(start);
        write::headers(&mut bytes, &mut push, (0, content.is_empty()), block, max_frame);
        if !content.is_empty() {
            write::data(&mut bytes, &mut push, (0, true), content, max_frame);
        }
        Prepared { bytes, starts, content: content.len() as u64 }
    }

    /// The length of the content, in bytes.
    pub fn content(&self) -> u64 {
        self.content
    }

    /// All frames, with stream 0.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The positions in [`Prepared::bytes`] of the stream, which has 4 bytes, big-endian.
    pub fn streams(&self) -> impl Iterator<Item = usize> {
        self.starts.iter().map(|start| start + Self::STREAM_AT)
    }

    /// Appends all frames, for this stream. Their content must have been claimed
    /// ([`Client::claim`](super::Client::claim)).
    #[inline]
    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        for at in self.streams() {
            out[from + at..from + at + 4].copy_from_slice(&stream.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_gets_the_stream() {
        let prepared = Prepared::new(b"abcd", b"xyz", 3);
        assert_eq!(prepared.content(), 3);
        let mut out = vec![9];
        prepared.write(0x0102_0305, &mut out);
        let headers = [&[0, 0, 3, 1, 0, 1, 2, 3, 5][..], b"abc"].concat();
        let continuation = [&[0, 0, 1, 9, 4, 1, 2, 3, 5][..], b"d"].concat();
        let data = [&[0, 0, 3, 0, 1, 1, 2, 3, 5][..], b"xyz"].concat();
        assert_eq!(out, [vec![9], headers, continuation, data].concat());
        assert_eq!(prepared.streams().collect::<Vec<_>>(), [5, 17, 27]);
    }

    #[test]
    fn a_request_without_content_ends_with_its_head() {
        let prepared = Prepared::new(b"ab", b"", 16_384);
        assert_eq!(prepared.bytes(), [&[0, 0, 2, 1, 5, 0, 0, 0, 0][..], b"ab"].concat());
    }
}
