//! The open connections of a model whose connections wait separately, in threads or green threads.
//! A stop closes them through this list.

use crate::host::{Host, PAUSE, Stop};
use regatta_sys::net;
use slab::Slab;
use std::{
    os::fd::AsFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The open connections.
pub(crate) struct Open<S>(Mutex<Slab<Arc<S>>>);

impl<S: AsFd> Open<S> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Open(Mutex::new(Slab::new())))
    }

    /// Adds a connection. It is removed when the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, stream: S) -> Entered<S> {
        let stream = Arc::new(stream);
        let key = self.lock().insert(Arc::clone(&stream));
        Entered { stream, key, open: Arc::clone(self) }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Shuts down all input: every connection answers the input that has arrived, and closes.
    pub(crate) fn shutdown_read(&self) {
        for (_, stream) in self.lock().iter() {
            // A connection that is already gone has no input.
            let _ = net::shutdown_read(stream.as_ref());
        }
    }

    /// Shuts down both directions of every connection.
    pub(crate) fn cut(&self) {
        for (_, stream) in self.lock().iter() {
            let _ = net::shutdown_both(stream.as_ref());
        }
    }

    /// Drains: shuts down all input, waits up to the host's grace period, and cuts the remaining
    /// connections. `sleep` waits in the model's own way.
    pub(crate) fn drain(&self, host: &Host, mut sleep: impl FnMut(Duration)) {
        self.shutdown_read();
        let until = Instant::now() + host.grace;
        while self.len() > 0 && Instant::now() < until {
            sleep(PAUSE / 4);
        }
        self.cut();
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<S>>> {
        // A panic closes its connection, not the server; the slab is consistent at every point.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in the list of open ones.
pub(crate) struct Entered<S: AsFd> {
    pub(crate) stream: Arc<S>,
    key: usize,
    open: Arc<Open<S>>,
}

impl<S: AsFd> Entered<S> {
    /// Waits until the connection may be closed. A drain cuts it when the grace period is over.
    pub(crate) fn before_close(&self, stop: &Stop, mut sleep: impl FnMut(Duration)) {
        while !stop.may_close(self.stream.as_ref()) {
            sleep(PAUSE / 4);
        }
    }
}

impl<S: AsFd> Drop for Entered<S> {
    fn drop(&mut self) {
        self.open.lock().remove(self.key);
    }
}
