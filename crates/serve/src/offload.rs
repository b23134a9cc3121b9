//! Jobs that are done in threads of their own, so that a loop goes on meanwhile.

use crate::host::Host;
use regatta_service::{Flow, Job, JobId, run_job_apart};
use rustix::event::{EventfdFlags, eventfd};
use std::{
    collections::VecDeque,
    io, mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// Threads for jobs, of a process. They are never waited for: a job under way ends with the process.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Queue>);

/// Bounded by those who wait for the results: a connection has a bounded number of jobs.
#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<Box<dyn FnOnce() + Send>>>,
    more: Condvar,
}

/// Of those who hold these locks none panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// The threads that the host wants, if any. Not before a fork: a child would lack them.
    pub(crate) fn of(host: &Host) -> io::Result<Option<Self>> {
        let Some(threads) = host.offload else { return Ok(None) };
        let queue = Arc::new(Queue::default());
        for _ in 0..threads.get() {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("job".into()).spawn(move || queue.work())?;
        }
        Ok(Some(Pool(queue)))
    }

    /// Does a job when its turn has come, and hands its reply to `done`.
    pub(crate) fn submit<J: Job>(&self, job: J, done: impl FnOnce(Vec<u8>, Flow) + Send + 'static) {
        let work = Box::new(move || {
            let mut reply = Vec::new();
            let flow = run_job_apart(job, &mut reply);
            done(reply, flow);
        });
        lock(&self.0.jobs).push_back(work);
        self.0.more.notify_one();
    }
}

impl Queue {
    fn work(&self) -> ! {
        loop {
            let mut jobs = lock(&self.jobs);
            let job = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            job();
        }
    }
}

/// A job that was done for a loop.
pub(crate) struct Done {
    /// What the loop calls its connection.
    pub(crate) token: usize,
    /// The job.
    pub(crate) id: JobId,
    /// Its reply.
    pub(crate) reply: Vec<u8>,
    /// What the connection does after it.
    pub(crate) flow: Flow,
}

/// A pool, and where a loop finds what was done for it. Its descriptor is readable while there is
/// something: one wake-up, however much that is.
pub(crate) struct Desk {
    pool: Pool,
    mailbox: Arc<Mailbox>,
}

struct Mailbox {
    done: Mutex<Vec<Done>>,
    bell: OwnedFd,
}

impl Desk {
    /// Fails when out of descriptors.
    pub(crate) fn new(pool: Pool) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Desk { pool, mailbox: Arc::new(Mailbox { done: Mutex::default(), bell }) })
    }

    /// Has a job done for a connection.
    pub(crate) fn submit<J: Job>(&self, token: usize, id: JobId, job: J) {
        let mailbox = Arc::clone(&self.mailbox);
        self.pool.submit(job, move |reply, flow| mailbox.put(Done { token, id, reply, flow }));
    }

    /// Takes what was done.
    pub(crate) fn take(&self) -> Vec<Done> {
        // First: whoever puts something in after this rings again. It fails when it was not rung.
        let _ = rustix::io::read(&self.mailbox.bell, &mut [0; 8]);
        mem::take(&mut lock(&self.mailbox.done))
    }
}

impl Mailbox {
    fn put(&self, done: Done) {
        let mut all = lock(&self.done);
        all.push(done);
        if all.len() == 1 {
            // It fails only at 2^64 - 2.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Desk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mailbox.bell.as_fd()
    }
}
