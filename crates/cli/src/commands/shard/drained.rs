//! Lines on stderr when a drain begins and when it has ended.

use crate::output;
use regatta_serve::Stop;
use regatta_shard::Shared;
use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Prints when the drain of a server begins, and when it has ended.
pub struct Drained {
    stop: Stop,
    /// Dropped when all clients have left.
    ended: Sender<()>,
    thread: JoinHandle<()>,
}

/// Prints both lines from now on. `None`: there will be no drain.
///
/// # Errors
/// Fails if the thread cannot be started that waits for the stop.
pub fn follow(shared: &Arc<Shared>, stop: &Stop, over: Duration) -> io::Result<Option<Drained>> {
    if over.is_zero() {
        return Ok(None);
    }
    let (ended, has_ended) = mpsc::channel();
    let (shared, waits) = (Arc::clone(shared), stop.clone());
    let follow = move || {
        if waits.wait().is_err() {
            return;
        }
        let clients = shared.counts.clients();
        output::log(&format!("regatta: drain begins: clients={clients} drain=\"{over:?}\""));
        // The sender is dropped without a message.
        let _ = has_ended.recv_timeout(over);
        let clients = shared.counts.clients();
        output::log_last(&format!("regatta: drain ended: clients={clients}"));
    };
    let thread = thread::Builder::new().name("drain".into()).spawn(follow)?;
    Ok(Some(Drained { stop: stop.clone(), ended, thread }))
}

impl Drained {
    /// The server has ended: waits until the lines are printed, if there was a drain.
    pub fn finish(self) {
        drop(self.ended);
        if self.stop.is_set() {
            // It does not panic.
            let _ = self.thread.join();
        }
    }
}
