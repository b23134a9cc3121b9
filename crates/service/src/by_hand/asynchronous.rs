//! The same two programs with `.await`. Run on `async`.

use super::{EMPTY, LAST_NAME, too_long};
use crate::{
    Limits,
    double::{QUOTED, TOO_LONG},
    style::asynchronous::{Patience, linger},
};
use regatta_proto::line::{Integer, MAX_LINE, escape};
use std::{io, time::Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Doubles integers until `end`.
pub(super) async fn double<T>(stream: T, limits: Limits) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut talk = Talk::new(stream, limits);
    let mut line = Vec::new();
    while talk.read_line(&mut line).await? && line != b"end" {
        match Integer::parse(&line) {
            Some(number) => number.write_double(&mut talk.output),
            None => {
                talk.output.extend_from_slice(b"error: not an integer: ");
                escape(&line, QUOTED, &mut talk.output);
            }
        }
        talk.output.push(b'\n');
    }
    talk.finish().await
}

/// Asks for a first name, then for a last name, and greets, until `end`.
pub(super) async fn dialogue<T>(stream: T, limits: Limits) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
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

/// A stream with its buffers. Output is sent before the program waits for more input.
struct Talk<T> {
    stream: BufReader<T>,
    output: Vec<u8>,
    limits: Limits,
    patience: Patience,
    /// No more input will come.
    ended: bool,
}

/// Bytes of replies from which on they are sent.
const FULL: usize = 16 * 1024;

impl<T: AsyncRead + AsyncWrite + Unpin> Talk<T> {
    fn new(stream: T, limits: Limits) -> Self {
        let patience = Patience::new(limits);
        Talk { stream: BufReader::new(stream), output: Vec::new(), limits, patience, ended: false }
    }

    /// Reads lines until one is not empty. False at the end of the conversation.
    async fn read_name(&mut self, name: &mut Vec<u8>) -> io::Result<bool> {
        while self.read_line(name).await? {
            if !name.is_empty() {
                return Ok(true);
            }
            self.output.extend_from_slice(EMPTY);
        }
        Ok(false)
    }

    /// Reads a line without its end. False at the end of the input, and after a line over the
    /// limit, which it answers.
    async fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        if self.output.len() >= FULL || !self.stream.buffer().contains(&b'\n') {
            self.send().await?;
            let due = Instant::now() + self.limits.idle;
            self.patience.within(due, self.stream.fill_buf()).await?;
        }
        let due = Instant::now() + self.limits.request;
        let up_to = (&mut self.stream).take(MAX_LINE as u64 + 1);
        self.patience.within(due, { up_to }.read_until(b'\n', line)).await?;
        if line.len() > MAX_LINE && line.ends_with(b"\r") {
            let one = (&mut self.stream).take(1);
            self.patience.within(due, { one }.read_until(b'\n', line)).await?;
        }
        if line.ends_with(b"\n") {
            line.pop();
            if line.ends_with(b"\r") {
                line.pop();
            }
            return Ok(true);
        }
        if too_long(line) {
            self.output.extend_from_slice(TOO_LONG);
        } else {
            self.ended = true;
        }
        Ok(false)
    }

    async fn send(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            let due = Instant::now() + self.limits.idle;
            self.patience.within(due, self.stream.write_all(&self.output)).await?;
            self.output.clear();
        }
        Ok(())
    }

    async fn finish(mut self) -> io::Result<()> {
        self.send().await?;
        if self.ended {
            return Ok(()); // see the straight-line form
        }
        linger(&mut self.stream, &mut self.patience).await
    }
}
