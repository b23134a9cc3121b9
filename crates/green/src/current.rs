//! How code on a thread finds the scheduler that runs there.

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

/// From now on this scheduler is the one of this thread; or there is none.
pub(crate) fn set(core: Option<Rc<Core>>) {
    CURRENT.set(core);
}

/// The scheduler of this thread.
///
/// # Panics
/// If there is none.
pub(crate) fn get() -> Rc<Core> {
    let core = CURRENT.with_borrow(Clone::clone);
    core.expect("green: there is no scheduler on this thread; call this inside green::run")
}

/// Lets a coroutine go on that waits in the scheduler with this inbox, from whatever thread.
pub(crate) fn wake(inbox: &Inbox, task: TaskId) {
    CURRENT.with_borrow(|core| match core {
        Some(core) if ptr::eq(Arc::as_ptr(core.inbox()), inbox) => core.enqueue(task),
        _ => inbox.post(task),
    });
}
