//! One scheduler per OS thread: its coroutines, and the loop that resumes them.
//!
//! A turn of the loop waits in epoll, reads the clock, and resumes each coroutine whose descriptor
//! became ready, directly from the event. Then it resumes the oldest queued coroutines (new ones,
//! timers, messages, yields). A coroutine runs until it must wait, then switches back to the loop.
//!
//! Wake-ups may be spurious: a coroutine that parks checks its condition again when it resumes. So
//! a wake-up carries only a number, and a late one does no harm.

use crate::inbox::Inbox;
use crate::readiness::{Interest, Poller, Source, TaskId, Woken};
use crate::stack::{CoroutineStack, Stacks};
use crate::timer::{NEVER, Wheel};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustix::event::Timespec;
use slab::Slab;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of reads, writes, accepts and messages of a coroutine without waiting, before it
/// yields to the others. Otherwise a peer that sends faster than it is served would monopolise the
/// thread.
const OPERATIONS_PER_TURN: u32 = 64;

/// How many queued coroutines are resumed per turn: at least `QUEUED_PER_TURN`, and at least
/// 1/`TURNS_PER_QUEUE` of the queue. So events are also polled in the middle of a long queue, and
/// each queued coroutine resumes after a bounded number of turns, however many events there are.
const QUEUED_PER_TURN: usize = 64;
const TURNS_PER_QUEUE: usize = 8;

/// Maximum number of events per `epoll_wait`.
const EVENTS_PER_TURN: usize = 512;

type Resumable = Coroutine<(), (), (), CoroutineStack>;

struct Task {
    /// `None` while it runs.
    coroutine: Option<Resumable>,
    queued: bool,
}

/// The state of a scheduler, shared by its loop and its coroutines.
pub(crate) struct Core {
    poller: Poller,
    tasks: RefCell<Slab<Task>>,
    queue: RefCell<VecDeque<TaskId>>,
    wheel: RefCell<Wheel>,
    stacks: Rc<Stacks>,
    inbox: Arc<Inbox>,
    started: Instant,
    now: Cell<Instant>,
    /// `now` in whole milliseconds since `started`.
    tick: Cell<u64>,
    /// The running coroutine, and its yielder back to the loop (null while the loop itself runs).
    current: Cell<TaskId>,
    yielder: Cell<*const Yielder<(), ()>>,
    operations_left: Cell<u32>,
    /// A coroutine has called `shutdown`.
    stopping: Cell<bool>,
    /// The remaining coroutines are being unwound.
    closing: Cell<bool>,
    main_panic: RefCell<Option<Box<dyn Any + Send>>>,
}

/// The error of a call that waits where waiting is impossible.
pub(crate) struct CannotWait;

impl From<CannotWait> for io::Error {
    fn from(_: CannotWait) -> io::Error {
        io::Error::other(
            "green: cannot wait here: this is not a coroutine of a running scheduler, or it is \
             being unwound",
        )
    }
}

impl Core {
    pub(crate) fn new(stacks: Rc<Stacks>) -> io::Result<Core> {
        let (poller, bell) = Poller::new()?;
        let now = Instant::now();
        Ok(Core {
            poller,
            tasks: RefCell::new(Slab::new()),
            queue: RefCell::new(VecDeque::new()),
            wheel: RefCell::new(Wheel::new()),
            stacks,
            inbox: Arc::new(Inbox::new(bell)),
            started: now,
            now: Cell::new(now),
            tick: Cell::new(0),
            current: Cell::new(0),
            yielder: Cell::new(ptr::null()),
            operations_left: Cell::new(0),
            stopping: Cell::new(false),
            closing: Cell::new(false),
            main_panic: RefCell::new(None),
        })
    }

    // ---- the loop ----

    /// Runs turns until no coroutine is left or one has called `shutdown`.
    pub(crate) fn run(&self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        let mut posted = Vec::new();
        loop {
            self.run_queued();
            if self.stopping.get() || self.tasks.borrow().is_empty() {
                return Ok(());
            }
            self.poller.wait(&mut events, self.time_to_wait())?;
            self.read_clock();
            self.wheel.borrow_mut().advance(self.tick.get(), |task| self.enqueue(task));
            for &event in &events {
                match self.poller.note(event) {
                    Woken::Tasks(tasks) => tasks.into_iter().flatten().for_each(|t| self.resume(t)),
                    Woken::Bell => {
                        self.inbox.collect(&mut posted);
                        posted.drain(..).for_each(|task| self.enqueue(task));
                    }
                }
            }
        }
    }

    /// Resumes the oldest coroutines queued so far, once each. Those that they queue wait until the
    /// next poll.
    fn run_queued(&self) {
        let queued = self.queue.borrow().len();
        for _ in 0..queued.min(QUEUED_PER_TURN.max(queued / TURNS_PER_QUEUE)) {
            let Some(task) = self.queue.borrow_mut().pop_front() else { return };
            if let Some(entry) = self.tasks.borrow_mut().get_mut(task as usize) {
                entry.queued = false;
            }
            self.resume(task);
        }
    }

    /// Returns how long to wait for events; `None` means until one arrives. The clock was read when
    /// the turn began, in whole ticks, so a timer is late by at most one turn and one tick.
    fn time_to_wait(&self) -> Option<Timespec> {
        if !self.queue.borrow().is_empty() {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let ticks = self.wheel.borrow().next()?.saturating_sub(self.tick.get());
        let (seconds, milliseconds) = (ticks / 1000, ticks % 1000);
        Some(Timespec { tv_sec: seconds as i64, tv_nsec: milliseconds as i64 * 1_000_000 })
    }

    fn read_clock(&self) {
        let now = Instant::now();
        self.now.set(now);
        self.tick.set(now.duration_since(self.started).as_millis() as u64);
    }

    /// Switches to a coroutine, until it waits or ends. Does nothing if the coroutine does not
    /// exist or is running.
    #[inline]
    fn resume(&self, task: TaskId) {
        // Taken out of the table, which may grow and move while the coroutine runs.
        let mut tasks = self.tasks.borrow_mut();
        let Some(mut coroutine) = tasks.get_mut(task as usize).and_then(|t| t.coroutine.take())
        else {
            return;
        };
        drop(tasks);
        self.current.set(task);
        self.operations_left.set(OPERATIONS_PER_TURN);
        let result = coroutine.resume(());
        self.yielder.set(ptr::null());
        match result {
            CoroutineResult::Yield(()) => {
                self.tasks.borrow_mut()[task as usize].coroutine = Some(coroutine);
            }
            CoroutineResult::Return(()) => self.end(task),
        }
    }

    fn end(&self, task: TaskId) {
        self.wheel.borrow_mut().remove(task);
        self.tasks.borrow_mut().remove(task as usize);
    }

    /// Unwinds every coroutine. No more can be spawned.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        let left: Vec<usize> = self.tasks.borrow().iter().map(|(number, _)| number).collect();
        for number in left {
            self.current.set(number as TaskId);
            let coroutine = self.tasks.borrow_mut()[number].coroutine.take();
            drop(coroutine);
            self.yielder.set(ptr::null());
            self.end(number as TaskId);
        }
    }

    // ---- calls from coroutines ----

    pub(crate) fn spawn(self: &Rc<Self>, body: impl FnOnce() + 'static) -> io::Result<()> {
        if self.closing.get() {
            return Err(io::Error::other("green: this scheduler is shutting down"));
        }
        let stack = self.stacks.take()?;
        let core = Rc::downgrade(self);
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // The loop that first resumes it keeps the scheduler alive.
            if let Some(core) = core.upgrade() {
                core.yielder.set(yielder);
            }
            // The panic hook has already reported the panic. Dropping its payload may panic again;
            // the second payload is leaked.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(panic)));
                std::mem::forget(dropped);
            }
        });
        let task = Task { coroutine: Some(coroutine), queued: false };
        let number = self.tasks.borrow_mut().insert(task);
        self.enqueue(number as TaskId);
        Ok(())
    }

    /// Spawns the first coroutine, whose panic is kept. The unwinding by `close` does not count as
    /// a panic.
    pub(crate) fn spawn_main(self: &Rc<Self>, main: impl FnOnce() + 'static) -> io::Result<()> {
        let core = Rc::downgrade(self);
        self.spawn(move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(main))
                && let Some(core) = core.upgrade().filter(|core| !core.closing.get())
            {
                core.main_panic.replace(Some(panic));
            }
        })
    }

    pub(crate) fn take_main_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.main_panic.take()
    }

    /// Queues a coroutine to be resumed.
    pub(crate) fn enqueue(&self, task: TaskId) {
        if let Some(entry) = self.tasks.borrow_mut().get_mut(task as usize)
            && !entry.queued
        {
            entry.queued = true;
            self.queue.borrow_mut().push_back(task);
        }
    }

    /// Switches back to the loop until this coroutine is woken or the tick `deadline` comes.
    /// Wake-ups may be spurious: check the condition again.
    ///
    /// A coroutine that unwinds must not wait: its destructors run to completion without switching.
    #[inline]
    pub(crate) fn park(&self, deadline: u64) -> Result<(), CannotWait> {
        let yielder = self.yielder.get();
        if yielder.is_null() || self.closing.get() || std::thread::panicking() {
            return Err(CannotWait);
        }
        let task = self.current.get();
        if deadline != NEVER {
            self.wheel.borrow_mut().set(task, deadline);
        }
        let back = RestoreYielder { core: self, yielder };
        // SAFETY: the yielder lies on the stack of the running coroutine, which is the caller of
        // this function. It was set when that coroutine started or resumed (`RestoreYielder`), and it is
        // null whenever the loop runs. `Core` is not `Sync`, so this is the coroutine's thread.
        unsafe { &*yielder }.suspend(());
        drop(back);
        if deadline != NEVER {
            self.wheel.borrow_mut().clear(task);
        }
        Ok(())
    }

    /// Waits until a source is ready, or fails with `TimedOut` after `timeout` ticks. Fails also if
    /// another coroutine waits for the same, or if waiting is impossible.
    #[inline]
    pub(crate) fn wait(&self, source: &Source, interest: Interest, timeout: u64) -> io::Result<()> {
        if source.is_ready(interest) {
            self.count_operation();
            return Ok(());
        }
        let deadline = self.ticks_from_now(timeout);
        while !source.is_ready(interest) {
            if !source.enter(interest, self.current.get()) {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "green: another coroutine already waits for this stream in this direction",
                ));
            }
            let parked = self.park(deadline);
            source.leave(interest);
            parked?;
            if self.tick.get() >= deadline && !source.is_ready(interest) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    /// Counts an operation that did not wait. After `OPERATIONS_PER_TURN` the coroutine yields to
    /// the others.
    #[inline]
    pub(crate) fn count_operation(&self) {
        match self.operations_left.get() {
            0 => self.yield_now(),
            left => self.operations_left.set(left - 1),
        }
    }

    pub(crate) fn yield_now(&self) {
        self.enqueue(self.current.get());
        // If it cannot wait, there is nothing to yield to.
        let _ = self.park(NEVER);
    }

    pub(crate) fn shutdown(&self) {
        self.stopping.set(true);
    }

    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }

    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    pub(crate) fn current_task(&self) -> TaskId {
        self.current.get()
    }

    // ---- time ----

    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    pub(crate) fn tick(&self) -> u64 {
        self.tick.get()
    }

    /// The first tick that is at least `ticks` whole milliseconds after the start of this turn.
    #[inline]
    pub(crate) fn ticks_from_now(&self, ticks: u64) -> u64 {
        self.tick.get().saturating_add(ticks).saturating_add(1)
    }

    /// The first tick that is not before `instant`.
    pub(crate) fn tick_at(&self, instant: Instant) -> u64 {
        ticks(instant.saturating_duration_since(self.started))
    }
}

/// Converts a duration to whole ticks, rounded up.
pub(crate) fn ticks(duration: Duration) -> u64 {
    let milliseconds = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(milliseconds).unwrap_or(NEVER)
}

/// Restores the coroutine's yielder when it resumes, even if it resumes by unwinding.
struct RestoreYielder<'a> {
    core: &'a Core,
    yielder: *const Yielder<(), ()>,
}

impl Drop for RestoreYielder<'_> {
    fn drop(&mut self) {
        self.core.yielder.set(self.yielder);
    }
}
