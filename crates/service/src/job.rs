//! Work that a reply needs besides its request: the bytes of a file, and a computation over them.
//! How it is met is the model's business: at once in the thread that asks, or elsewhere.

use crate::{Flow, file};
use rustix::{process::setpriority_process, thread::gettid};
use std::{cell::Cell, ffi::CStr, io, sync::Arc};

/// A need: a file's bytes, read anew for this reply, and then a computation over them.
pub trait Job: Send + 'static {
    /// Whether there can be one. Where not, nothing is compiled for it.
    const EVER: bool = true;

    /// The file.
    fn file(&self) -> &Arc<CStr>;

    /// The computation takes so little (below a millisecond) that it is not worth handing over, and
    /// must not stand in line behind those that take long.
    fn is_short(&self) -> bool;

    /// Computes over the bytes of the whole file, and appends the reply. The error of a file that
    /// could not be read has a reply too.
    fn finish(self, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow;
}

/// The job of a service that needs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}

impl Job for Never {
    const EVER: bool = false;

    fn file(&self) -> &Arc<CStr> {
        match *self {}
    }

    fn is_short(&self) -> bool {
        match *self {}
    }

    fn finish(self, _: io::Result<&[u8]>, _: &mut Vec<u8>) -> Flow {
        match self {}
    }
}

/// Which jobs are not done at once, in the thread that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defer {
    /// None.
    Nothing,
    /// Those that take long: others do not wait for them.
    Long,
    /// All.
    All,
}

impl Defer {
    /// Whether `job` is one of those.
    pub fn takes<J: Job>(self, job: &J) -> bool {
        match self {
            Defer::Nothing => false,
            Defer::Long => !job.is_short(),
            Defer::All => true,
        }
    }
}

/// Does a job at once, in this thread.
pub fn run<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    let mut content = file::buffer();
    let read = file::read(job.file(), &mut content);
    let flow = job.finish(read.map(|()| &content[..]), reply);
    file::give_back(content);
    flow
}

/// How far a thread for jobs stands back, as a nice value (setpriority(2)).
const STAND_BACK: i32 = 10;

thread_local! {
    static STANDS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Does a job in a thread that is there for jobs. From now on that thread leaves the CPU to those
/// that answer whenever they want it.
pub fn run_apart<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    if !STANDS_BACK.replace(true) {
        // Lowering one's own priority is always permitted; without it the job is done all the same.
        let _ = setpriority_process(Some(gettid()), STAND_BACK);
    }
    run(job, reply)
}
