//! What the leader sends, on a thread of its own.

use super::outbox::Outbox;
use crate::{machine::now_ns, message::ToAgent};
use regatta_load::wire::Inbox;
use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Most messages that wait for a leader which sends requests and reads no answers.
const MOST_ANSWERS: usize = 1024;
/// Interval between two looks whether the leader has read some of them.
const LOOKED_EVERY: Duration = Duration::from_millis(5);

/// When a part of a message last came, in nanoseconds; 0: never.
pub(super) type Parts = Arc<AtomicU64>;

/// The way from the leader.
pub(super) struct FromLeader<R> {
    inbox: Inbox<Marked<R>>,
    outbox: Outbox,
}

impl<R: Read> FromLeader<R> {
    pub fn new(from: R, parts: Parts, outbox: Outbox) -> FromLeader<R> {
        FromLeader { inbox: Inbox::new(Marked { from, parts }), outbox }
    }

    /// Receives messages, one at a time: the next one is read when `handled` says that the last one is out of the
    /// memory. Each is passed on with the time at which it came; the last is the end of the input, or an error.
    pub fn run(
        mut self,
        came: impl Fn(io::Result<Option<ToAgent>>, u64) -> bool,
        handled: &mpsc::Receiver<()>,
    ) {
        loop {
            let message = self.inbox.receive();
            let is_last = !matches!(message, Ok(Some(_)));
            if !came(message, now_ns()) || is_last || handled.recv().is_err() {
                return;
            }
            // A leader that does not read is not heard until it does, so its lease ends.
            while self.outbox.waiting() >= MOST_ANSWERS {
                thread::sleep(LOOKED_EVERY);
            }
        }
    }
}

/// Marks when a part of a message comes.
struct Marked<R> {
    from: R,
    parts: Parts,
}

impl<R: Read> Read for Marked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(to)?;
        // The end of a message is no part: what the message is worth is known only once it was read.
        if to[..n].last().is_some_and(|last| *last != b'\n') {
            self.parts.store(now_ns(), Relaxed);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Request;
    use std::io::Write;

    #[test]
    fn a_part_of_a_message_is_marked_and_its_end_is_not() {
        let parts = Parts::default();
        let mut from = Marked { from: io::Cursor::new(b"{\"a\":1}\n"), parts: parts.clone() };
        assert_eq!(from.read(&mut [0; 16]).unwrap(), 8);
        assert_eq!(parts.load(Relaxed), 0);
        for whole in [&b" "[..], b"{\"a\":1}\n{"] {
            parts.store(0, Relaxed);
            let mut from = Marked { from: whole, parts: parts.clone() };
            assert!(from.read(&mut [0; 16]).unwrap() > 0);
            assert!(parts.load(Relaxed) > 0, "{whole:?}");
        }
    }

    #[test]
    fn the_next_message_is_read_when_the_last_one_was_handled() {
        let (reader, mut writer) = io::pipe().unwrap();
        let message = ToAgent { seq: 1, body: Request::Renew };
        let line = serde_json::to_string(&message).unwrap() + "\n";
        // Spaces before a message are no part of it.
        writer.write_all(format!("  {line}{line}").as_bytes()).unwrap();
        drop(writer);
        let (sender, came) = mpsc::channel();
        let (handle, handled) = mpsc::sync_channel(1);
        let from = FromLeader::new(reader, Parts::default(), Outbox::new().0);
        let thread = thread::spawn(move || {
            from.run(|message, _| sender.send(message.unwrap().is_some()).is_ok(), &handled);
        });
        assert!(came.recv().unwrap());
        assert!(came.recv_timeout(Duration::from_millis(50)).is_err(), "too early");
        handle.send(()).unwrap();
        assert!(came.recv().unwrap());
        handle.send(()).unwrap();
        assert!(!came.recv().unwrap(), "the end");
        thread.join().unwrap();
    }
}
