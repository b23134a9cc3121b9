//! The start and the end of a scheduler.

use crate::current;
use crate::overflow::Watch;
use crate::scheduler::Core;
use crate::stack::{Guard, Stacks};
use std::io;
use std::panic::resume_unwind;
use std::rc::Rc;

/// The configuration of a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Stack size per coroutine in bytes, rounded up to whole pages. Only touched pages use memory.
    pub stack_size: usize,
    /// Maximum number of coroutines alive at once in this scheduler. Address space is reserved for
    /// all of them.
    pub max_coroutines: usize,
    /// How the guard page below each stack is created.
    pub guard: Guard,
}

impl Default for Config {
    /// 64 KiB of stack, 131,072 coroutines (8.5 GiB of address space, no memory).
    fn default() -> Config {
        Config { stack_size: 64 * 1024, max_coroutines: 128 * 1024, guard: Guard::Lightest }
    }
}

/// Runs a scheduler on this thread, with `main` as its first coroutine, until every coroutine has
/// ended or one has called [`shutdown`](crate::shutdown). The remaining coroutines are unwound:
/// their destructors run, and their sockets close.
///
/// A panic ends only its own coroutine. A panic of `main` is resumed from here once all have ended.
///
/// # Errors
/// Fails if a scheduler already runs on this thread, if the stacks of `config` do not fit into the
/// address space, or if the kernel refuses the reservation of the stacks, the first guard page, one
/// of two descriptors, the signal handlers, or a wait.
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

/// Unwinds every coroutine before the scheduler is dropped, however the loop ends.
struct Running<'a> {
    core: &'a Core,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.core.close();
        current::set(None);
    }
}
