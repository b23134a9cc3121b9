//! A scheduler's beginning and end, and how code on its thread finds it.

use crate::mailbox::Inbox;
use crate::overflow::Watch;
use crate::readiness::TaskId;
use crate::scheduler::Core;
use crate::stack::Guard;
use std::cell::RefCell;
use std::io;
use std::panic::resume_unwind;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

/// How a scheduler is set up.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of stack per coroutine, rounded up to whole pages. Only touched pages are memory.
    pub stack_size: usize,
    /// How many coroutines may live at once in this scheduler. Address space is reserved for all.
    pub max_coroutines: usize,
    /// How the page below each stack is guarded.
    pub guard: Guard,
}

impl Default for Config {
    /// 64 KiB of stack, 131,072 coroutines (8.5 GiB of address space, no memory).
    fn default() -> Config {
        Config { stack_size: 64 * 1024, max_coroutines: 128 * 1024, guard: Guard::Lightest }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Runs a scheduler on this thread, with `main` as its first coroutine, until every coroutine has
/// ended or one has called [`shutdown`](crate::shutdown). What is left then is unwound: its
/// destructors run, its sockets close.
///
/// A panic ends its coroutine alone. That of `main` goes on from here once all have ended.
///
/// # Errors
/// If a scheduler already runs on this thread, or the kernel refuses the reservation of the
/// stacks, a descriptor (two are used) or the signal handler.
pub fn run(config: Config, main: impl FnOnce() + 'static) -> io::Result<()> {
    if CURRENT.with_borrow(Option::is_some) {
        return Err(io::Error::other(
            "green: a scheduler already runs on this thread; use green::spawn, or another thread",
        ));
    }
    let core = Rc::new(Core::new(config)?);
    let watch = Watch::start(core.stacks().shape())?;
    CURRENT.set(Some(core.clone()));
    let running = Running { core: &core };
    let outcome = core.spawn_main(main).and_then(|()| core.run());
    drop(running);
    drop(watch);
    match core.take_main_panic() {
        Some(panic) => resume_unwind(panic),
        None => outcome,
    }
}

/// The scheduler of this thread.
///
/// # Panics
/// If there is none.
pub(crate) fn current() -> Rc<Core> {
    let core = CURRENT.with_borrow(Clone::clone);
    core.expect("green: there is no scheduler on this thread; call this inside green::run")
}

/// Tells the scheduler of this thread, if there is one.
pub(crate) fn with_current(tell: impl FnOnce(&Core)) {
    CURRENT.with_borrow(|core| core.as_deref().map(tell));
}

/// Lets a coroutine go on that waits in the scheduler with this inbox, from whatever thread.
pub(crate) fn wake(inbox: &Inbox, task: TaskId) {
    CURRENT.with_borrow(|core| match core {
        Some(core) if ptr::eq(Arc::as_ptr(core.inbox()), inbox) => core.enqueue(task),
        _ => inbox.post(task),
    });
}

/// However the loop ends, every coroutine is unwound before the scheduler goes.
struct Running<'a> {
    core: &'a Core,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.core.close();
        CURRENT.set(None);
    }
}
