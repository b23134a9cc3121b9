//! The frames of a connection.

use crate::{Codec, Decoded};
use regatta_http2::{
    frame::{Header, write::PREFACE},
    server::MAX_FRAME,
};

/// Splits the input into the preface and frames, whose contents it does not look at.
#[derive(Debug, Default)]
pub struct Frames {
    /// Whether the preface was found.
    has_begun: bool,
}

impl Codec for Frames {
    /// The preface or a frame. If its start is already wrong, that part of it.
    type Request<'a> = &'a [u8];

    const MAX_FRAME: usize = Header::SIZE + MAX_FRAME;

    #[inline]
    fn decode<'a>(&mut self, input: &'a [u8]) -> Decoded<&'a [u8]> {
        if !self.has_begun {
            return self.preface(input);
        }
        let Some(header) = input.first_chunk() else { return Decoded::Incomplete };
        let length = match Header::read(header).length as usize {
            length if length > MAX_FRAME => 0,
            length => length,
        };
        match input.get(..Header::SIZE + length) {
            Some(frame) => Decoded::Request(frame, frame.len()),
            None => Decoded::Incomplete,
        }
    }
}

impl Frames {
    #[cold]
    fn preface<'a>(&mut self, input: &'a [u8]) -> Decoded<&'a [u8]> {
        let start = &input[..input.len().min(PREFACE.len())];
        self.has_begun = start.len() == PREFACE.len();
        match self.has_begun || !PREFACE.starts_with(start) {
            true => Decoded::Request(start, start.len()),
            false => Decoded::Incomplete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lengths of what is found, and of the rest.
    fn lengths(mut input: &[u8]) -> (Vec<usize>, usize) {
        let (mut frames, mut all) = (Frames::default(), Vec::new());
        while let Decoded::Request(frame, taken) = frames.decode(input) {
            assert_eq!(frame, &input[..taken]);
            all.push(taken);
            input = &input[taken..];
        }
        (all, input.len())
    }

    #[test]
    fn finds_the_preface_and_frames() {
        let ping = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], &[7; 8]].concat();
        let empty: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
        let all = [PREFACE, empty, &ping, &ping[..16]].concat();
        assert_eq!(lengths(&all), (vec![24, 9, 17], 16));
        assert_eq!(lengths(&all[..23]), (vec![], 23));
        assert_eq!(lengths(&all[..32]), (vec![24], 8));
    }

    #[test]
    fn what_can_only_be_wrong_is_not_awaited() {
        assert_eq!(lengths(b"GET / HTTP/1.1\r\n\r\n"), (vec![18], 0));
        assert_eq!(lengths(b"P"), (vec![], 1));
        let long = [PREFACE, &[0, 0x40, 1, 0, 0, 0, 0, 0, 1]].concat();
        assert_eq!(lengths(&long), (vec![24, 9], 0));
        let longest = [PREFACE, &[0, 0x40, 0, 0, 0, 0, 0, 0, 1], &[0; 16_384]].concat();
        assert_eq!(lengths(&longest), (vec![24, Frames::MAX_FRAME], 0));
    }
}
