//! What is sent to the leader, on a thread of its own: a leader that does not read must not keep the agent from ending
//! the load. How much waits is counted, so that those who cause it can wait, too.

use crate::{
    machine::now_ns,
    message::{Answer, FromAgent},
};
use regatta_load::wire;
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
};

/// The way to the leader.
#[derive(Clone)]
pub(super) struct Outbox {
    messages: mpsc::Sender<FromAgent>,
    waiting: Arc<AtomicUsize>,
}

/// What waits to be sent.
pub(super) struct Waiting {
    messages: mpsc::Receiver<FromAgent>,
    count: Arc<AtomicUsize>,
}

impl Outbox {
    /// A way on which nothing waits.
    pub fn new() -> (Outbox, Waiting) {
        let (sender, receiver) = mpsc::channel();
        let count = Arc::new(AtomicUsize::new(0));
        let waiting = Waiting { messages: receiver, count: count.clone() };
        (Outbox { messages: sender, waiting: count }, waiting)
    }

    /// Has a message sent. If the leader is gone, nothing happens: stdin ends.
    pub fn send(&self, message: FromAgent) {
        self.waiting.fetch_add(1, Relaxed);
        if self.messages.send(message).is_err() {
            self.waiting.store(0, Relaxed);
        }
    }

    /// Number of messages that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

impl Waiting {
    /// Sends the messages.
    pub fn run(self, mut to: impl Write) {
        for mut message in &self.messages {
            if let Answer::Clock { t2_ns, .. } = &mut message.body {
                *t2_ns = now_ns();
            }
            if wire::send(&mut to, &message).is_err() {
                break;
            }
            self.count.fetch_sub(1, Relaxed);
        }
        // Nobody waits for a leader that is gone.
        drop(self.messages);
        self.count.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_testkit::deadline::until;
    use std::{
        io::{self, Read},
        thread,
    };

    fn message(seq: u64) -> FromAgent {
        let body = Answer::Refused { because: "x".repeat(100_000) };
        FromAgent { seq, body }
    }

    #[test]
    fn what_the_leader_does_not_read_is_counted() {
        let (outbox, waiting) = Outbox::new();
        let (mut reader, writer) = io::pipe().unwrap();
        thread::spawn(move || waiting.run(writer));
        (0..10).for_each(|seq| outbox.send(message(seq)));
        assert_eq!(outbox.waiting(), 10, "a pipe holds 64 KiB, less than one of them");
        reader.read_exact(&mut [0; 500_000]).unwrap();
        until("those that were read no longer count", || outbox.waiting() <= 6);
        drop(reader);
        until("nothing waits for a leader that is gone", || outbox.waiting() == 0);
        outbox.send(message(10));
        until("nothing waits", || outbox.waiting() == 0);
    }
}
