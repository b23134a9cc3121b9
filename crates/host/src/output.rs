//! The output of a contender: always read, so that it never blocks and fills no memory; its end is
//! kept to be told when the contender fails.

use rustix::fs::OFlags;
use std::{
    collections::VecDeque,
    io::{self, PipeReader, Read},
};

/// What the contender writes to stdout and stderr: read so that it never blocks, the end kept.
pub(crate) struct Output {
    pipe: Option<PipeReader>,
    kept: VecDeque<u8>,
}

impl Output {
    const KEPT: usize = 4096;
    /// Read at one turn at most, so that a contender that never pauses cannot hold up the rest.
    const AT_ONCE: usize = 1 << 20;

    pub fn new(pipe: PipeReader) -> io::Result<Output> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Output { pipe: Some(pipe), kept: VecDeque::with_capacity(Self::KEPT) })
    }

    /// Reads what has come, without waiting.
    pub fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 65536];
        let mut read = 0;
        while let Some(pipe) = &mut self.pipe
            && read < Self::AT_ONCE
        {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    self.keep(&buffer[..n]);
                    read += n;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// To wait on with poll(2); `None` once every writer is gone.
    pub fn pipe(&self) -> Option<&PipeReader> {
        self.pipe.as_ref()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(Self::KEPT)..];
        let surplus = (self.kept.len() + bytes.len()).saturating_sub(Self::KEPT);
        self.kept.drain(..surplus);
        self.kept.extend(bytes);
    }

    /// The end of it as text, without control characters.
    pub fn last_words(&self) -> String {
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        let printable = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let text: String = String::from_utf8_lossy(&bytes).chars().filter(printable).collect();
        text.trim().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn keeps_the_end_and_nothing_more() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut output = Output::new(reader).unwrap();
        for i in 0..1000 {
            writeln!(writer, "line {i}").unwrap();
            output.drain().unwrap();
        }
        assert_eq!(output.kept.len(), Output::KEPT);
        assert!(output.last_words().ends_with("line 998\nline 999"));
        writer.write_all(b"\x1b[1mbye\x07").unwrap();
        drop(writer);
        output.drain().unwrap();
        assert!(output.last_words().ends_with("line 999\n[1mbye"));
        assert!(output.pipe().is_none());
    }

    #[test]
    fn a_single_write_longer_than_what_is_kept() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut output = Output::new(reader).unwrap();
        writer.write_all(&[b'a'; 5000]).unwrap();
        writer.write_all(b"z").unwrap();
        output.drain().unwrap();
        assert_eq!(output.last_words().len(), Output::KEPT);
        assert!(output.last_words().ends_with("az"));
    }
}
