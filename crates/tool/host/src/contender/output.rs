//! The output of a contender. It is always read, so that the contender never blocks, and its end is
//! kept, to be reported if the contender fails.

use rustix::fs::OFlags;
use std::{
    collections::VecDeque,
    io::{self, PipeReader, Read},
};

/// The output of a contender to stdout and stderr, of which only the end is kept.
pub(crate) struct Output {
    pipe: Option<PipeReader>,
    kept: VecDeque<u8>,
}

impl Output {
    /// Number of bytes kept.
    const KEPT: usize = 4096;
    /// Maximum number of bytes read at once, so that a contender that never pauses cannot block the
    /// supervisor.
    const AT_ONCE: usize = 1 << 20;

    pub fn new(pipe: PipeReader) -> io::Result<Output> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Output { pipe: Some(pipe), kept: VecDeque::with_capacity(Self::KEPT) })
    }

    /// Reads pending output without waiting.
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

    /// Returns the pipe, to wait on with poll(2); `None` once every writer is gone.
    pub fn pipe(&self) -> Option<&PipeReader> {
        self.pipe.as_ref()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(Self::KEPT)..];
        let surplus = (self.kept.len() + bytes.len()).saturating_sub(Self::KEPT);
        self.kept.drain(..surplus);
        self.kept.extend(bytes);
    }

    /// Returns the end of the output as text, without white space around it, and without control
    /// characters other than newlines and tabs.
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
    fn keeps_only_the_end() {
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
        // A child that another test starts has a copy of the writer until it executes its program.
        regatta_testkit::deadline::until("every writer is gone", || {
            output.drain().unwrap();
            output.pipe().is_none()
        });
        assert!(output.last_words().ends_with("line 999\n[1mbye"));
    }

    #[test]
    fn keeps_the_end_of_a_single_long_write() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut output = Output::new(reader).unwrap();
        writer.write_all(&[b'a'; 5000]).unwrap();
        writer.write_all(b"z").unwrap();
        output.drain().unwrap();
        assert_eq!(output.last_words().len(), Output::KEPT);
        assert!(output.last_words().ends_with("az"));
    }
}
