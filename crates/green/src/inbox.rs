//! The inbox: where other threads leave the numbers of coroutines to wake.
//!
//! The first one in rings the scheduler's bell, so that many posts between two turns cost one system
//! call.

use crate::readiness::TaskId;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// The numbers of coroutines to wake.
pub(crate) struct Inbox {
    tasks: Mutex<Vec<TaskId>>,
    /// An eventfd in the scheduler's epoll set.
    bell: OwnedFd,
}

impl Inbox {
    pub(crate) fn new(bell: OwnedFd) -> Inbox {
        Inbox { tasks: Mutex::new(Vec::new()), bell }
    }

    /// Leaves a number, from any thread.
    pub(crate) fn post(&self, task: TaskId) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(task);
        let first = tasks.len() == 1;
        drop(tasks);
        if first {
            // It fails only with EAGAIN, when the bell has rung 2^64 - 2 times.
            let rung = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            debug_assert!(rung.is_ok());
        }
    }

    /// Takes out all numbers, on the scheduler's thread, and leaves an empty list in exchange.
    pub(crate) fn collect(&self, empty: &mut Vec<TaskId>) {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner), empty);
    }
}
