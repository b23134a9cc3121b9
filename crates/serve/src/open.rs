//! The open connections of a model whose connections wait on their own, in threads, green
//! threads or tasks: so that a stop can end them from outside.

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

    /// Enters a connection. It leaves when the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, stream: S) -> Entered<S> {
        let stream = Arc::new(stream);
        let key = self.lock().insert(Arc::clone(&stream));
        Entered { stream, key, open: Arc::clone(self) }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Ends all input: every connection answers what has arrived, and ends.
    pub(crate) fn finish_reading(&self) {
        for (_, stream) in self.lock().iter() {
            // One that is gone already has nothing left to end.
            let _ = net::finish_reading(stream.as_ref());
        }
    }

    /// Ends both directions of every connection.
    pub(crate) fn cut(&self) {
        for (_, stream) in self.lock().iter() {
            let _ = net::finish(stream.as_ref());
        }
    }

    /// Drains: ends the input, waits up to the host's grace, cuts what is left. `sleep` waits in
    /// the model's own way.
    pub(crate) fn drain(&self, host: &Host, mut sleep: impl FnMut(Duration)) {
        self.finish_reading();
        let until = Instant::now() + host.grace;
        while self.len() > 0 && Instant::now() < until {
            sleep(PAUSE / 4);
        }
        self.cut();
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<S>>> {
        // A panic ends its connection, not the server; the slab is consistent at every point.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted as open.
pub(crate) struct Entered<S: AsFd> {
    pub(crate) stream: Arc<S>,
    key: usize,
    open: Arc<Open<S>>,
}

impl<S: AsFd> Entered<S> {
    /// Waits until the connection may be closed. A drain cuts it when its grace is over.
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
