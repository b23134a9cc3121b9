//! A stream as `BufRead + Write`. What was written is sent when the program would otherwise wait
//! for more input, so a straight-line program needs no thought about flushing, and a pipeline of
//! requests is answered with one write.

use crate::{
    Limits,
    style::sequential::{Patience, Stream, linger, send},
};
use std::io::{self, BufRead, Read, Write};

/// Bytes of one read, and of replies from which on they are sent.
const BUFFER: usize = 16 * 1024;

pub(super) struct Talk<'a, T> {
    stream: &'a mut T,
    limits: Limits,
    patience: Patience,
    input: Box<[u8]>,
    unread: std::ops::Range<usize>,
    output: Vec<u8>,
    /// No more input will come.
    ended: bool,
}

impl<'a, T: Stream> Talk<'a, T> {
    pub(super) fn new(stream: &'a mut T, limits: Limits) -> io::Result<Self> {
        let input = vec![0; BUFFER].into_boxed_slice();
        let patience = Patience::new(stream, limits)?;
        let (output, ended) = (Vec::new(), false);
        Ok(Talk { stream, limits, patience, input, unread: 0..0, output, ended })
    }

    /// Ends the connection. One whose input has ended is closed: to end its output first would, at
    /// a stop, answer what the client still sends with a reset (RFC 1122, 4.2.2.13).
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        if self.ended { Ok(()) } else { linger(self.stream) }
    }

    /// Limits the wait for the rest of a line whose beginning was the last that was read.
    fn watch_the_line(&mut self) -> io::Result<()> {
        let last_read = &self.input[..self.unread.end];
        let partial = last_read.last().is_some_and(|&byte| byte != b'\n');
        self.patience.after(self.stream, last_read.contains(&b'\n'), partial)
    }
}

impl<T: Stream> BufRead for Talk<'_, T> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.flush()?;
            self.watch_the_line()?;
            let Talk { stream, patience, input, .. } = self;
            patience.before(*stream, |stream| stream.wait_readable())?;
            let read = patience.before(*stream, |stream| stream.read(input))?;
            self.unread = 0..read;
            self.ended = read == 0;
        }
        Ok(&self.input[self.unread.clone()])
    }

    fn consume(&mut self, amount: usize) {
        self.unread.start += amount;
    }
}

impl<T: Stream> Read for Talk<'_, T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl<T: Stream> Write for Talk<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        if self.output.len() >= BUFFER {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        send(self.stream, &mut self.output, false, self.limits).map(drop)
    }
}
