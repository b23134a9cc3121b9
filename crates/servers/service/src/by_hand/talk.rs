//! A stream as `BufRead + Write`. Output is sent when the program would otherwise wait for input.
//! So a straight-line program never needs to flush, and pipelined requests are answered with one
//! write.

use crate::{
    Limits,
    style::sequential::{IdleTimer, Stream, linger, send},
};
use std::io::{self, BufRead, Read, Write};

/// Bytes per read, and bytes of replies from which on they are sent.
const BUFFER: usize = 16 * 1024;

pub(super) struct Talk<'a, T> {
    stream: &'a mut T,
    limits: Limits,
    idle_timer: IdleTimer,
    input: Box<[u8]>,
    unread: std::ops::Range<usize>,
    output: Vec<u8>,
    /// The input has ended.
    ended: bool,
}

impl<'a, T: Stream> Talk<'a, T> {
    pub(super) fn new(stream: &'a mut T, limits: Limits) -> io::Result<Self> {
        let input = vec![0; BUFFER].into_boxed_slice();
        let idle_timer = IdleTimer::new(stream, limits)?;
        let (output, ended) = (Vec::new(), false);
        Ok(Talk { stream, limits, idle_timer, input, unread: 0..0, output, ended })
    }

    /// Closes the connection. If the input has ended, it does so at once: with `linger`, a server
    /// that stops would answer later input with a reset (RFC 1122, 4.2.2.13).
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        if self.ended { Ok(()) } else { linger(self.stream) }
    }

    /// Limits the wait for the rest of a line if the last read ended inside one.
    fn watch_the_line(&mut self) -> io::Result<()> {
        let last_read = &self.input[..self.unread.end];
        let partial = last_read.last().is_some_and(|&byte| byte != b'\n');
        self.idle_timer.after(self.stream, last_read.contains(&b'\n'), partial)
    }
}

impl<T: Stream> BufRead for Talk<'_, T> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.flush()?;
            self.watch_the_line()?;
            let Talk { stream, idle_timer, input, .. } = self;
            idle_timer.before(*stream, |stream| stream.wait_readable())?;
            let read = idle_timer.before(*stream, |stream| stream.read(input))?;
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
