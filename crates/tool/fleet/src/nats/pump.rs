//! Pipes, read and written by threads, so that a full or empty pipe does not keep the rest waiting.
//!
//! What waits between a pipe and the rest is limited in lines and in bytes.

use super::stream::{FULL, LONGEST};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Most lines that wait.
const MOST_LINES: usize = 1024;
/// Most bytes that wait, unless there is only one line, which may be longer.
pub(super) const USUAL: usize = FULL;
/// The same, where a line of the longest length must not keep short ones from waiting behind it.
pub(super) const BEHIND_LONGEST: usize = LONGEST + FULL;

/// A line, and the room that it takes.
type Waiting = (Vec<u8>, OwnedSemaphorePermit);

/// The lines that were read from a pipe.
pub(super) struct FromPipe(mpsc::Receiver<Waiting>);

impl FromPipe {
    /// Waits for the next line, without its line break. `None`: nothing more comes.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.0.recv().await.map(|(line, _)| line)
    }
}

/// What is to be written to a pipe.
pub(super) struct ToPipe {
    sender: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    most: usize,
}

impl ToPipe {
    /// Waits until there is room, and has the bytes written, e.g. a line with its line break. Returns whether the
    /// pipe is still open.
    pub async fn send(&self, bytes: Vec<u8>) -> bool {
        let weight = weight(&bytes, self.most);
        let Ok(room) = self.room.clone().acquire_many_owned(weight).await else { return false };
        self.sender.send((bytes, room)).await.is_ok()
    }

    /// Has the bytes written, unless there is no room or the pipe is closed. Returns whether they will be.
    pub fn try_send(&self, bytes: Vec<u8>) -> bool {
        let room = self.room.clone().try_acquire_many_owned(weight(&bytes, self.most));
        room.is_ok_and(|room| self.sender.try_send((bytes, room)).is_ok())
    }
}

/// The part of the room for `most` bytes that these bytes take.
fn weight(bytes: &[u8], most: usize) -> u32 {
    bytes.len().clamp(1, most) as u32
}

/// Reads lines until the end, an error or a line of over 256 MiB.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn read_lines(from: impl Read + Send + 'static) -> io::Result<FromPipe> {
    let (sender, lines) = mpsc::channel(MOST_LINES);
    let room = Arc::new(Semaphore::new(USUAL));
    let read = move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            let read = from.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line);
            // A line that is cut off is none.
            if read.is_err() || line.pop() != Some(b'\n') {
                return;
            }
            let acquired = room.clone().acquire_many_owned(weight(&line, USUAL));
            let Ok(taken) = futures_lite::future::block_on(acquired) else { return };
            if sender.blocking_send((line, taken)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("pipe-in".into()).spawn(read)?;
    Ok(FromPipe(lines))
}

/// Writes what is sent until the sender is dropped, or an error. Then the pipe is closed, and the thread ends. At most
/// `most` bytes wait.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn write_lines(
    mut to: impl Write + Send + 'static,
    most: usize,
) -> io::Result<(ToPipe, JoinHandle<()>)> {
    let (sender, mut waiting) = mpsc::channel::<Waiting>(MOST_LINES);
    let write = move || {
        while let Some((bytes, _room)) = waiting.blocking_recv() {
            if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("pipe-out".into()).spawn(write)?;
    Ok((ToPipe { sender, room: Arc::new(Semaphore::new(most)), most }, thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::block_on;
    use regatta_testkit::deadline::until;
    use std::{
        io::Cursor,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
    };

    #[test]
    fn complete_lines_are_read_until_the_end() {
        let mut lines = read_lines(Cursor::new(b"a\n\nb\ncut".to_vec())).unwrap();
        let read: Vec<_> = std::iter::from_fn(|| block_on(lines.next())).collect();
        assert_eq!(read, [&b"a"[..], b"", b"b"]);
    }

    #[test]
    fn bytes_are_written_until_the_sender_is_dropped() {
        let (reader, writer) = io::pipe().unwrap();
        let (sender, thread) = write_lines(writer, USUAL).unwrap();
        assert!(block_on(sender.send(b"a\n".to_vec())));
        assert!(sender.try_send(b"b\n".to_vec()));
        drop(sender);
        assert_eq!(io::read_to_string(reader).unwrap(), "a\nb\n");
        thread.join().unwrap();
    }

    #[test]
    fn a_pipe_that_nobody_reads_takes_a_limited_number_of_bytes() {
        let (reader, writer) = io::pipe().unwrap();
        let (sender, _) = write_lines(writer, 1 << 20).unwrap();
        let line = vec![b'x'; 300 << 10];
        // The pipe itself has 64 KiB.
        let taken = (0..100).take_while(|_| sender.try_send(line.clone())).count();
        assert_eq!(taken, 3);
        drop(reader);
        until("the pipe is closed", || !sender.try_send(Vec::new()));
        assert!(!block_on(sender.send(line)));
    }

    #[test]
    fn a_line_that_is_longer_than_the_room_waits_alone() {
        let (reader, writer) = io::pipe().unwrap();
        let (sender, _) = write_lines(writer, 1 << 20).unwrap();
        assert!(sender.try_send(vec![b'x'; 3 << 20]));
        assert!(!sender.try_send(vec![b'x']));
        drop(sender);
        assert_eq!(io::read_to_string(reader).unwrap().len(), 3 << 20);
    }

    /// Lines of 1 MiB without end, and how many were read.
    struct Endless(Arc<AtomicUsize>);

    impl Read for Endless {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let before = self.0.fetch_add(to.len(), Relaxed);
            to.fill(b'x');
            if before >> 20 != (before + to.len()) >> 20 {
                to[0] = b'\n';
            }
            Ok(to.len())
        }
    }

    #[test]
    fn no_more_is_read_while_nobody_takes_the_lines() {
        let read = Arc::new(AtomicUsize::new(0));
        let mut lines = read_lines(Endless(read.clone())).unwrap();
        until("the room is full", || read.load(Relaxed) >= USUAL);
        for _ in 0..20 {
            // With one line at most in the hand of the thread, and its buffer.
            assert!(read.load(Relaxed) <= USUAL + (2 << 20), "{read:?}");
            thread::sleep(std::time::Duration::from_millis(5));
        }
        for _ in 0..20 {
            assert!(block_on(lines.next()).unwrap().len() < 2 << 20);
        }
    }
}
