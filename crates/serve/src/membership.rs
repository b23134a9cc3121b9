//! Members: sessions that hear of each other, and who is to hear a push.

use regatta_engine::{Post, Start};
use regatta_service::{Never, Session};
use slab::Slab;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Sessions that post to each other. `Start` makes one for each connection.
pub trait Members:
    Start<Session: Session<Job = Never, Push: Send + Sync, Local: Send> + Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<F> Members for F where
    F: Start<Session: Session<Job = Never, Push: Send + Sync, Local: Send> + Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Maximum number of pushes that wait for a member: those of 64 bytes fill its backlog. A member for
/// which more would wait is a slow consumer and is closed.
pub(crate) fn waiting<S: Session>() -> usize {
    (S::BACKLOG / 64).max(1)
}

/// Where pushes for a member go.
pub(crate) trait Mail<P>: Clone {
    /// Returns false if there is no room for it.
    fn send(&self, push: P) -> bool;
}

/// All members of a server.
pub(crate) struct Registry<T>(Mutex<Slab<Entry<T>>>);

struct Entry<T> {
    mail: T,
    overrun: Arc<AtomicBool>,
}

impl<T> Registry<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Registry(Mutex::new(Slab::new())))
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Entry<T>>> {
        // A panic ends its connection, not the server; the slab is consistent at every point.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One member. It leaves when this is dropped.
pub(crate) struct Membership<T> {
    registry: Arc<Registry<T>>,
    mail: T,
    key: Option<usize>,
    overrun: Arc<AtomicBool>,
}

impl<T> Membership<T> {
    /// It has not joined.
    pub(crate) fn new(registry: Arc<Registry<T>>, mail: T) -> Self {
        Membership { registry, mail, key: None, overrun: Arc::default() }
    }

    /// Whether it has missed something.
    pub(crate) fn is_overrun(&self) -> bool {
        self.overrun.load(Relaxed)
    }

    pub(crate) fn post<P: Clone>(&mut self, post: Post<P>)
    where
        T: Mail<P>,
    {
        match post {
            Post::Join if self.key.is_none() => {
                let (mail, overrun) = (self.mail.clone(), Arc::clone(&self.overrun));
                self.key = Some(self.registry.lock().insert(Entry { mail, overrun }));
            }
            Post::Join => {}
            Post::Leave => self.leave(),
            Post::Others(push) => {
                for (key, entry) in self.registry.lock().iter() {
                    if self.key != Some(key) && !entry.mail.send(push.clone()) {
                        entry.overrun.store(true, Relaxed);
                    }
                }
            }
        }
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.registry.lock().remove(key);
        }
    }
}

impl<T> Drop for Membership<T> {
    fn drop(&mut self) {
        self.leave();
    }
}
