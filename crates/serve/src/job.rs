//! Doing jobs: the file is read and the computation done, in this thread.

use crate::{clock, file};
use regatta_service::{Flow, Job};
use rustix::{process::setpriority_process, thread::gettid};
use std::cell::Cell;

/// Does a job at once.
pub(crate) fn run<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    let mut content = file::buffer();
    let read = file::read(job.file(), &mut content);
    let flow = job.finish(clock::now(), read.map(|()| &content[..]), reply);
    file::give_back(content);
    flow
}

/// How far a thread for jobs stands back, as a nice value (setpriority(2)).
const STAND_BACK: i32 = 10;

thread_local! {
    static STANDS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Does a job in a thread that exists for jobs. From now on that thread leaves the CPU to those that
/// serve connections whenever they want it.
pub(crate) fn run_apart<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    if !STANDS_BACK.replace(true) {
        // Lowering one's own priority is always permitted; without it the job is done all the same.
        let _ = setpriority_process(Some(gettid()), STAND_BACK);
    }
    run(job, reply)
}
