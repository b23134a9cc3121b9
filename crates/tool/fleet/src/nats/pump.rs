//! Lines of pipes, read and written by threads, so that a full or empty pipe does not keep the rest waiting.

use super::stream::LONGEST;
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    thread::{self, JoinHandle},
};
use tokio::sync::mpsc;

/// Most lines between a pipe and its reader or writer.
const WAITING: usize = 1024;

/// Reads lines, without the line break, until the end, an error or a line of over 256 MiB.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn read_lines(from: impl Read + Send + 'static) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(WAITING);
    let read = move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            let read = from.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line);
            // A line that is cut off is none.
            if read.is_err() || line.pop() != Some(b'\n') || sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("pipe-in".into()).spawn(read)?;
    Ok(lines)
}

/// Writes lines until the sender is dropped, or an error. Then the pipe is closed, and the thread ends.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn write_lines(
    mut to: impl Write + Send + 'static,
) -> io::Result<(mpsc::Sender<Vec<u8>>, JoinHandle<()>)> {
    let (sender, mut lines) = mpsc::channel::<Vec<u8>>(WAITING);
    let write = move || {
        while let Some(mut line) = lines.blocking_recv() {
            line.push(b'\n');
            if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("pipe-out".into()).spawn(write)?;
    Ok((sender, thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn complete_lines_are_read_until_the_end() {
        let mut lines = read_lines(Cursor::new(b"a\n\nb\ncut".to_vec())).unwrap();
        let read: Vec<_> = std::iter::from_fn(|| lines.blocking_recv()).collect();
        assert_eq!(read, [&b"a"[..], b"", b"b"]);
    }

    #[test]
    fn lines_are_written_until_the_sender_is_dropped() {
        let (reader, writer) = io::pipe().unwrap();
        let (sender, thread) = write_lines(writer).unwrap();
        for line in ["a", "b"] {
            sender.blocking_send(line.into()).unwrap();
        }
        drop(sender);
        assert_eq!(io::read_to_string(reader).unwrap(), "a\nb\n");
        thread.join().unwrap();
    }
}
