//! How code on a thread finds the scheduler that runs on it.

use crate::inbox::Inbox;
use crate::readiness::TaskId;
use crate::scheduler::Core;
use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Whether a scheduler runs on this thread.
pub(crate) fn exists() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Sets or clears this thread's scheduler.
pub(crate) fn set(core: Option<Rc<Core>>) {
    CURRENT.set(core);
}

/// Returns this thread's scheduler.
///
/// # Panics
/// Panics if no scheduler runs on this thread.
pub(crate) fn get() -> Rc<Core> {
    let core = CURRENT.with_borrow(Clone::clone);
    core.expect("green: there is no scheduler on this thread; call this inside green::run")
}

/// Wakes a coroutine of the scheduler with this inbox, from any thread.
pub(crate) fn wake(inbox: &Inbox, task: TaskId) {
    CURRENT.with_borrow(|core| match core {
        Some(core) if ptr::eq(Arc::as_ptr(core.inbox()), inbox) => core.enqueue(task),
        _ => inbox.post(task),
    });
}
