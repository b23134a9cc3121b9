//! Members: sessions that post to each other, and the registry that delivers pushes to them.

use regatta_engine::{Backlog, Bounds, Post, Push, PushOutcome, RoomName, SessionFactory, Wire};
use regatta_service::{Never, Session, style::member::Wake};
use slab::Slab;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Sessions that post to each other. `SessionFactory` creates one per connection.
pub trait PushSessionFactory:
    SessionFactory<Session: Session<Job = Never, Push: Wire + Sync, Local: Send> + Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<F> PushSessionFactory for F where
    F: SessionFactory<Session: Session<Job = Never, Push: Wire + Sync, Local: Send> + Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Wakes a member that waits for pushes.
pub(crate) trait Bell: Clone {
    /// Makes the member check its inbox, now or when it next waits.
    fn ring(&self);
}

/// All members of a server.
pub(crate) struct Registry<B, P> {
    rooms: Mutex<HashMap<RoomName, Slab<Entry<B, P>>>>,
    /// The bounds of a member that joins a room.
    bounds: BoundsOf,
}

type BoundsOf = Box<dyn Fn(&RoomName) -> Bounds + Send + Sync>;

struct Entry<B, P> {
    bell: B,
    inbox: Arc<Inbox<P>>,
}

/// The pushes that a member has not received yet.
struct Inbox<P> {
    pushes: Mutex<Backlog<P>>,
    /// Set when it joins a room.
    bounds: OnceLock<Bounds>,
    /// The overflow policy has closed the member.
    overrun: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic closes its connection, not the server; the locked data is consistent at every point.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B, P> Registry<B, P> {
    /// Creates a registry. `bounds`: those of a member that joins this room.
    pub(crate) fn new(bounds: impl Fn(&RoomName) -> Bounds + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Registry { rooms: Mutex::default(), bounds: Box::new(bounds) })
    }
}

impl<P: Push> Inbox<P> {
    /// Adds a push. Returns whether it is queued, and whether the member must be woken.
    fn add(&self, push: P) -> (bool, bool) {
        // Only members of a room are pushed to.
        let Some(bounds) = self.bounds.get() else { return (false, false) };
        // A member that is being closed receives nothing more.
        if self.overrun.load(Relaxed) {
            return (false, false);
        }
        let mut pushes = lock(&self.pushes);
        let was_empty = pushes.is_empty();
        match pushes.add(push, bounds) {
            PushOutcome::Queued => (true, was_empty),
            PushOutcome::Missed => (false, false),
            PushOutcome::Close => {
                self.overrun.store(true, Relaxed);
                (false, true)
            }
        }
    }
}

/// The membership of one member. It leaves its room on drop.
pub(crate) struct Membership<B, P> {
    registry: Arc<Registry<B, P>>,
    bell: B,
    inbox: Arc<Inbox<P>>,
    /// Its room, and its key in the room.
    seat: Option<(RoomName, usize)>,
}

impl<B, P> Membership<B, P> {
    /// Creates a member that has not joined a room.
    pub(crate) fn new(registry: Arc<Registry<B, P>>, bell: B) -> Self {
        let inbox = Inbox {
            pushes: Mutex::default(),
            bounds: OnceLock::new(),
            overrun: AtomicBool::new(false),
        };
        Membership { registry, bell, inbox: Arc::new(inbox), seat: None }
    }

    /// Whether the policy has closed it as a slow consumer.
    pub(crate) fn is_overrun(&self) -> bool {
        self.inbox.overrun.load(Relaxed)
    }

    fn leave(&mut self) {
        let Some((room, key)) = self.seat.take() else { return };
        let mut rooms = lock(&self.registry.rooms);
        let Some(members) = rooms.get_mut(&room) else { return };
        members.remove(key);
        if members.is_empty() {
            rooms.remove(&room);
        }
    }
}

impl<B: Bell, P: Push> Membership<B, P> {
    /// Takes the oldest pending push.
    pub(crate) fn next(&self) -> Option<P> {
        lock(&self.inbox.pushes).take()
    }

    /// Returns the reason why the bell has rung. `None` if it has not, or if the push was received
    /// meanwhile.
    pub(crate) fn rung(&self) -> Option<Wake<P>> {
        let push = self.next().map(Wake::Push);
        push.or_else(|| self.is_overrun().then_some(Wake::Overrun))
    }

    /// Carries out a post. Returns the number of members that a push is queued for, including this
    /// one if it has joined, and 0 for other posts.
    pub(crate) fn post(&mut self, post: Post<P>) -> u32 {
        match post {
            Post::Join(room) if self.seat.is_none() => {
                self.inbox.bounds.get_or_init(|| (self.registry.bounds)(&room));
                let entry = Entry { bell: self.bell.clone(), inbox: Arc::clone(&self.inbox) };
                let mut rooms = lock(&self.registry.rooms);
                let key = rooms.entry(room.clone()).or_default().insert(entry);
                drop(rooms);
                self.seat = Some((room, key));
            }
            // Only engines have sessions in several rooms.
            Post::Join(_) | Post::Enter(_) | Post::Exit(_) => {}
            Post::Leave => {
                self.leave();
                lock(&self.inbox.pushes).clear();
            }
            Post::Others(push) | Post::Counted(push, _) => {
                let room = self.seat.as_ref().map_or(&RoomName::LOBBY, |(room, _)| room);
                return self.push(room, &push);
            }
            Post::To(room, push) => return self.push(&room, &push),
            // These models have no uplink.
            Post::Remote(..) => {}
        }
        0
    }

    /// Queues a push for the other members of a room. Returns for how many it is queued, plus 1 if this
    /// one is in the room.
    fn push(&self, room: &RoomName, push: &P) -> u32 {
        let own = self.seat.as_ref().filter(|(own, _)| own == room).map(|(_, key)| *key);
        let mut queued = 0;
        for (key, entry) in lock(&self.registry.rooms).get(room).into_iter().flatten() {
            if own == Some(key) {
                queued += 1;
                continue;
            }
            let (is_queued, wakes) = entry.inbox.add(push.clone());
            queued += u32::from(is_queued);
            if wakes {
                entry.bell.ring();
            }
        }
        queued
    }
}

impl<B, P> Drop for Membership<B, P> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_engine::Policy;

    #[derive(Clone)]
    struct Silent;

    impl Bell for Silent {
        fn ring(&self) {}
    }

    #[derive(Clone)]
    struct Said;

    impl Push for Said {}

    #[test]
    fn a_room_ends_with_its_last_member() {
        let (policy, counts) = (Policy::Close, Arc::default());
        let bounds = Bounds { bytes: 1, pushes: 1, policy, counts, memory: Arc::default() };
        let registry = Registry::<Silent, Said>::new(move |_| bounds.clone());
        let mut members = [(); 2].map(|()| Membership::new(Arc::clone(&registry), Silent));
        for member in &mut members {
            member.post(Post::Join(RoomName::of("den")));
        }
        let [mut first, second] = members;
        first.post(Post::Leave);
        assert_eq!(lock(&registry.rooms).len(), 1);
        drop(second);
        assert!(lock(&registry.rooms).is_empty(), "the room is kept");
    }
}
