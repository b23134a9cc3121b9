//! The same two programs with `.await`. Run on `async`.

use super::words::{EMPTY, LAST_NAME, too_long};
use crate::{
    Limits,
    double::{QUOTED, TOO_LONG},
    style::asynchronous::{Stream, linger, read, send},
};
use regatta_proto::line::{Integer, escape};
use std::{io, time::Instant};

/// Doubles integers until `end`.
pub(super) async fn double<T: Stream>(stream: T, limits: Limits) -> io::Result<()> {
    let mut talk = Talk::new(stream, limits);
    let mut line = Vec::new();
    while talk.read_line(&mut line).await? && line != b"end" {
        match Integer::parse(&line) {
            Some(number) => number.write_doubled(&mut talk.output),
            None => {
                talk.output.extend_from_slice(b"error: not an integer: ");
                escape(&line, QUOTED, &mut talk.output);
            }
        }
        talk.output.push(b'\n');
    }
    talk.finish().await
}

/// Reads a first name, asks for the last name, and greets, until a first name is `end`.
pub(super) async fn dialogue<T: Stream>(stream: T, limits: Limits) -> io::Result<()> {
    let mut talk = Talk::new(stream, limits);
    let mut first = Vec::new();
    let mut last = Vec::new();
    while talk.read_name(&mut first).await? && first != b"end" {
        talk.output.extend_from_slice(LAST_NAME);
        if !talk.read_name(&mut last).await? {
            break;
        }
        talk.output.extend_from_slice(b"hello ");
        talk.output.extend_from_slice(&first);
        talk.output.push(b' ');
        talk.output.extend_from_slice(&last);
        talk.output.push(b'\n');
    }
    talk.finish().await
}

/// A stream with its buffers. Output is sent before waiting for input.
struct Talk<T> {
    stream: T,
    input: Vec<u8>,
    unread: std::ops::Range<usize>,
    output: Vec<u8>,
    limits: Limits,
    /// The input has ended.
    ended: bool,
}

/// Bytes per read.
const READ: usize = 8 * 1024;
/// Bytes of replies from which on they are sent.
const FULL: usize = 16 * 1024;

impl<T: Stream> Talk<T> {
    fn new(stream: T, limits: Limits) -> Self {
        let input = vec![0; READ];
        Talk { stream, input, unread: 0..0, output: Vec::new(), limits, ended: false }
    }

    /// Reads lines until one is not empty. Returns `false` at the end of the conversation.
    async fn read_name(&mut self, name: &mut Vec<u8>) -> io::Result<bool> {
        while self.read_line(name).await? {
            if !name.is_empty() {
                return Ok(true);
            }
            self.output.extend_from_slice(EMPTY);
        }
        Ok(false)
    }

    /// Reads a line without its line end. Returns `false` at the end of the input, and after
    /// replying to a line over the limit.
    async fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        if self.output.len() >= FULL {
            self.send(false).await?;
        }
        let mut inside: Option<Instant> = None;
        loop {
            let unread = &self.input[self.unread.clone()];
            let end = unread.iter().position(|&byte| byte == b'\n');
            line.extend_from_slice(&unread[..end.unwrap_or(unread.len())]);
            self.unread.start += end.map_or(unread.len(), |end| end + 1);
            // The last byte may be the `\r` of a line end that is not complete yet.
            if too_long(line) {
                self.output.extend_from_slice(TOO_LONG);
                return Ok(false);
            }
            if end.is_some() {
                if line.ends_with(b"\r") {
                    line.pop();
                }
                return Ok(true);
            }
            if !line.is_empty() {
                inside.get_or_insert(self.stream.now().instant);
            }
            if !self.fill(inside).await? {
                self.ended = true;
                return Ok(false);
            }
        }
    }

    /// Sends the pending output and reads more. Returns `false` at the end of the input.
    async fn fill(&mut self, inside: Option<Instant>) -> io::Result<bool> {
        self.send(false).await?;
        let Talk { stream, input, limits, .. } = self;
        let read = read(stream, input, inside, *limits).await?;
        self.unread = 0..read;
        Ok(read > 0)
    }

    async fn send(&mut self, last: bool) -> io::Result<()> {
        if !self.output.is_empty() {
            send(&mut self.stream, &self.output, last, self.limits).await?;
            self.output.clear();
        }
        Ok(())
    }

    async fn finish(mut self) -> io::Result<()> {
        self.send(!self.ended).await?;
        if self.ended {
            return Ok(()); // see `talk::Talk::finish`
        }
        linger(&mut self.stream).await
    }
}
