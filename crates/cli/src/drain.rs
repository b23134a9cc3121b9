//! Lines on stderr when the drain of a service begins, and when it has ended.

use crate::output;
use regatta_serve::Stop;
use std::{
    io,
    sync::mpsc::{self, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Prints when the drain of a service begins, and when it has ended.
pub struct DrainReport {
    stop: Stop,
    /// Dropped when the service has ended.
    ended: Sender<()>,
    thread: JoinHandle<()>,
}

impl DrainReport {
    /// Waits for the stop in a thread of its own, and prints the lines. A process must not fork after this. The drain
    /// has ended when the service has, or after `longest`. `begins`, `ended`: what the lines say; the latter gets how
    /// long it took.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow(
        stop: &Stop,
        longest: Option<Duration>,
        begins: impl FnOnce() -> String + Send + 'static,
        ended: impl FnOnce(Duration) -> String + Send + 'static,
    ) -> io::Result<DrainReport> {
        let (sender, has_ended) = mpsc::channel::<()>();
        let waits = stop.clone();
        let follow = move || {
            // A start that fails sets it, too.
            if waits.wait().is_err() || waits.has_failed() {
                return;
            }
            let began = Instant::now();
            output::log(&format!("regatta: drain begins: {}", begins()));
            // The sender is dropped without a message.
            let _ = has_ended.recv_timeout(longest.unwrap_or(Duration::MAX));
            output::log_last(&format!("regatta: drain ended: {}", ended(began.elapsed())));
        };
        let thread = thread::Builder::new().name("drain".into()).spawn(follow)?;
        Ok(DrainReport { stop: stop.clone(), ended: sender, thread })
    }

    /// The service has ended: waits until the lines are printed, if the stop was set.
    pub fn end(self) {
        drop(self.ended);
        if self.stop.is_set() {
            // It does not panic.
            let _ = self.thread.join();
        }
    }
}
