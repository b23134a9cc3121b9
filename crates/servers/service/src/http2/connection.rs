//! The state of a connection, which jobs may need, too.

use regatta_http2::server::{Config, Server};
use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The state.
#[derive(Debug)]
pub(super) struct State {
    pub server: Server,
    /// Memory for one reply.
    pub scratch: Vec<u8>,
}

impl State {
    fn new() -> State {
        let server = Server::new(Config::SERVER).expect("all are in their ranges");
        State { server, scratch: Vec::new() }
    }
}

/// Where the state is: with jobs, they share it, because the reply of a job is written when it has ended,
/// possibly in another thread, and then takes from the windows of its stream and of the connection.
#[derive(Debug)]
pub(super) enum Place {
    Own(Box<State>),
    Shared(Arc<Mutex<State>>),
}

impl Place {
    /// The place of a new connection. `is_shared`: whether jobs exist.
    pub fn new(is_shared: bool) -> Place {
        match is_shared {
            true => Place::Shared(Arc::new(Mutex::new(State::new()))),
            false => Place::Own(Box::new(State::new())),
        }
    }

    /// The place for a job; `None` if the state is not shared.
    pub fn shared(&self) -> Option<&Arc<Mutex<State>>> {
        match self {
            Place::Own(_) => None,
            Place::Shared(shared) => Some(shared),
        }
    }

    /// The state.
    #[inline]
    pub fn get(&mut self) -> Access<'_> {
        match self {
            Place::Own(state) => Access::Own(state),
            Place::Shared(state) => Access::Locked(lock(state)),
        }
    }
}

/// Locks the state. A panic that held it ended its connection.
pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Access to the state.
pub(super) enum Access<'a> {
    Own(&'a mut State),
    Locked(MutexGuard<'a, State>),
}

impl Deref for Access<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        match self {
            Access::Own(state) => state,
            Access::Locked(state) => state,
        }
    }
}

impl DerefMut for Access<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        match self {
            Access::Own(state) => state,
            Access::Locked(state) => state,
        }
    }
}
