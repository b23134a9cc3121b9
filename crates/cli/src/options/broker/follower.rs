//! A thread that follows where the broker is.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How long the first question waits for an answer.
const FIRST: Duration = Duration::from_millis(500);

/// The thread, which starts with the first question.
#[derive(Default)]
pub struct Follower(Mutex<Option<SyncSender<()>>>);

/// The thread's end of it.
pub struct Following {
    woken: Receiver<()>,
    found: SyncSender<()>,
}

impl Follower {
    /// Starts the thread, if it has not started, and waits until it has found something, or for half a second.
    pub fn start(
        &self,
        name: &str,
        run: impl FnOnce(Following) + Send + 'static,
    ) -> io::Result<()> {
        let mut started = lock(&self.0);
        if started.is_some() {
            return Ok(());
        }
        // One that is woken twice asks once.
        let (wake, woken) = sync_channel(1);
        let (found, first) = sync_channel(1);
        let run = move || run(Following { woken, found });
        thread::Builder::new().name(name.into()).spawn(run)?;
        _ = first.recv_timeout(FIRST);
        *started = Some(wake);
        Ok(())
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if let Some(wake) = &*lock(&self.0) {
            // If there is no room, it is woken already.
            _ = wake.try_send(());
        }
    }
}

impl Following {
    /// It has found something.
    pub fn found(&self) {
        _ = self.found.try_send(());
    }

    /// Waits until then, or until it is woken. Returns whether it is still used.
    pub fn wait(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        self.woken.recv_timeout(left) != Err(RecvTimeoutError::Disconnected)
    }
}

/// The value in a mutex.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
