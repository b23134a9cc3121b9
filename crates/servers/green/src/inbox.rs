//! The inbox: other threads post the numbers of coroutines to wake here.
//!
//! Only the first post since the last turn signals the scheduler's eventfd, so many posts between
//! two turns cost one system call.

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

    /// Posts a number, from any thread.
    pub(crate) fn post(&self, task: TaskId) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(task);
        let first = tasks.len() == 1;
        drop(tasks);
        if first {
            // It can fail only with EAGAIN, when the counter has reached 2^64 - 2.
            let rung = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            debug_assert!(rung.is_ok());
        }
    }

    /// Takes all numbers, on the scheduler's thread, by swapping them with an empty list.
    pub(crate) fn collect(&self, empty: &mut Vec<TaskId>) {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner), empty);
    }
}
