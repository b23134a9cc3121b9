//! Runs jobs: reads the file and computes, in the current thread.

use crate::{clock, work::file};
use regatta_service::{Flow, Job};
use rustix::{process::setpriority_process, thread::gettid};
use std::cell::Cell;

/// Runs a job at once.
pub(crate) fn run<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    let mut content = file::buffer();
    let read = file::read(job.file(), &mut content);
    let flow = job.finish(clock::now(), read.map(|()| &content[..]), reply);
    file::give_back(content);
    flow
}

/// The nice value of threads for jobs (setpriority(2)).
const JOB_NICE: i32 = 10;

thread_local! {
    static IS_NICE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a job in a thread for jobs. From now on that thread has a lower priority than the threads
/// that serve connections.
pub(crate) fn run_at_low_priority<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    if !IS_NICE.replace(true) {
        // A thread may always lower its own priority. If this fails, the job still runs.
        let _ = setpriority_process(Some(gettid()), JOB_NICE);
    }
    run(job, reply)
}
