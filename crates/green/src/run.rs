//! A scheduler's beginning and end.

use crate::current;
use crate::overflow::Watch;
use crate::scheduler::Core;
use crate::stack::{Guard, Stacks};
use std::io;
use std::panic::resume_unwind;
use std::rc::Rc;

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
    if current::exists() {
        return Err(io::Error::other(
            "green: a scheduler already runs on this thread; use green::spawn, or another thread",
        ));
    }
    let stacks = Stacks::reserve(config.stack_size, config.max_coroutines, config.guard)?;
    let shape = stacks.shape();
    let core = Rc::new(Core::new(stacks)?);
    let watch = Watch::start(shape)?;
    current::set(Some(core.clone()));
    let running = Running { core: &core };
    let outcome = core.spawn_main(main).and_then(|()| core.run());
    drop(running);
    drop(watch);
    match core.take_main_panic() {
        Some(panic) => resume_unwind(panic),
        None => outcome,
    }
}

/// However the loop ends, every coroutine is unwound before the scheduler goes.
struct Running<'a> {
    core: &'a Core,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.core.close();
        current::set(None);
    }
}
