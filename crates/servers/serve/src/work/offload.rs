//! Jobs that run in separate threads, so that a loop is not blocked.

use crate::work::job;
use regatta_engine::{Conn, JobId, Task};
use regatta_service::{Flow, Job};
use rustix::event::{EventfdFlags, eventfd};
use std::{
    collections::VecDeque,
    io, mem,
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
};

/// The threads for jobs of a process. They are never joined: a running job ends with the process.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Queue>);

/// The queue of jobs. It is bounded by the waiting connections: each has a bounded number of jobs,
/// and unwanted jobs are dropped.
#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<Waiting>>,
    more: Condvar,
}

struct Waiting {
    /// Cannot be upgraded once nobody waits for the result.
    wanted: Weak<()>,
    work: Box<dyn FnOnce() + Send>,
}

/// Minimum capacity that a queue grows by.
const ROOM: usize = 64;

/// No code panics while it holds these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Starts the threads. Must not be called before a fork, because a child would lack them.
    pub(crate) fn new(threads: NonZeroUsize) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        for _ in 0..threads.get() {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("job".into()).spawn(move || queue.work())?;
        }
        Ok(Pool(queue))
    }

    /// Queues a job, and passes its reply to `done`. A job that panics closes its connection. A job
    /// that is no longer `wanted` is dropped, and `done` with it.
    pub(crate) fn submit<J: Job>(
        &self,
        job: J,
        wanted: Weak<()>,
        done: impl FnOnce(Vec<u8>, Flow) + Send + 'static,
    ) {
        let work = Box::new(move || {
            let mut reply = Vec::new();
            // Unwind safety: nothing of the job is used after a panic, and its reply is discarded.
            match catch_unwind(AssertUnwindSafe(|| job::run_at_low_priority(job, &mut reply))) {
                Ok(flow) => done(reply, flow),
                Err(_) => done(Vec::new(), Flow::Close),
            }
        });
        self.0.put(Waiting { wanted, work });
    }
}

impl Waiting {
    fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }
}

impl Queue {
    fn put(&self, job: Waiting) {
        let mut jobs = lock(&self.jobs);
        if jobs.len() == jobs.capacity() {
            // Drops unwanted jobs before the queue grows. Afterwards at least half of it is free,
            // so that this does not happen for each job.
            jobs.retain(Waiting::is_wanted);
            let room = jobs.len().max(ROOM);
            jobs.reserve(room);
        }
        jobs.push_back(job);
        drop(jobs);
        self.more.notify_one();
    }

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
            if job.is_wanted() {
                (job.work)();
            }
        }
    }
}

/// A finished job of a loop.
pub(crate) struct Done {
    /// The connection that needs it.
    pub(crate) conn: Conn,
    /// The job.
    pub(crate) id: JobId,
    /// Its reply.
    pub(crate) reply: Vec<u8>,
    /// What the connection does after it.
    pub(crate) flow: Flow,
}

/// A pool, and the results for one loop. Its descriptor is readable while there are results: one
/// wake-up, however many there are.
pub(crate) struct Desk {
    pool: Pool,
    mailbox: Arc<Mailbox>,
}

struct Mailbox {
    done: Mutex<Vec<Done>>,
    bell: OwnedFd,
}

impl Desk {
    /// Creates a desk. Fails if out of descriptors.
    pub(crate) fn new(pool: Pool) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Desk { pool, mailbox: Arc::new(Mailbox { done: Mutex::default(), bell }) })
    }

    /// Submits a job of a connection. It runs unless it is no longer `wanted`.
    pub(crate) fn submit<J: Job>(&self, task: Task<J>) {
        let Task { conn, id, job, wanted } = task;
        let mailbox = Arc::clone(&self.mailbox);
        let done = move |reply, flow| mailbox.put(Done { conn, id, reply, flow });
        self.pool.submit(job, wanted, done);
    }

    /// Takes the finished jobs.
    pub(crate) fn take(&self) -> Vec<Done> {
        // First reset the bell: results added after this ring it again. The read fails if it was
        // not rung.
        let _ = rustix::io::read(&self.mailbox.bell, &mut [0; 8]);
        mem::take(&mut lock(&self.mailbox.done))
    }
}

impl Mailbox {
    fn put(&self, done: Done) {
        let mut all = lock(&self.done);
        all.push(done);
        if all.len() == 1 {
            // It fails only if the counter is at 2^64 - 2.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Desk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mailbox.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_service::Now;
    use std::{ffi::CStr, sync::mpsc, time::Duration};

    const DEADLINE: Duration = Duration::from_secs(10);

    /// A job that runs a closure.
    struct Does(Box<dyn FnOnce() + Send>, Arc<CStr>);

    fn does(what: impl FnOnce() + Send + 'static) -> Does {
        Does(Box::new(what), c"/dev/null".into())
    }

    impl Job for Does {
        fn file(&self) -> &Arc<CStr> {
            &self.1
        }

        fn is_short(&self) -> bool {
            false
        }

        fn finish(self, _: Now, _: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow {
            reply.push(b'x');
            (self.0)();
            Flow::Continue
        }
    }

    fn pool() -> Pool {
        Pool::new(NonZeroUsize::MIN).unwrap()
    }

    #[test]
    fn a_job_that_panics_closes_its_connection_and_the_thread_continues() {
        let (pool, wanted) = (pool(), Arc::new(()));
        let (sender, results) = mpsc::channel();
        for job in [does(|| panic!("on purpose")), does(|| ())] {
            let sender = sender.clone();
            pool.submit(job, Arc::downgrade(&wanted), move |reply, flow| {
                sender.send((reply, flow)).unwrap();
            });
        }
        assert_eq!(results.recv_timeout(DEADLINE).unwrap(), (vec![], Flow::Close));
        assert_eq!(results.recv_timeout(DEADLINE).unwrap(), (b"x".to_vec(), Flow::Continue));
    }

    #[test]
    fn unwanted_jobs_are_neither_run_nor_kept() {
        let pool = pool();
        let (begun, began) = mpsc::channel();
        let (go_on, gate) = mpsc::channel::<()>();
        let (sender, results) = mpsc::channel();
        let submit = |job, wanted: &Arc<()>, name: &'static str| {
            let sender = sender.clone();
            let done = move |_, _| sender.send(name).unwrap();
            pool.submit(job, Arc::downgrade(wanted), done);
        };
        let (stays, leaves) = (Arc::new(()), Arc::new(()));
        let blocks = move || {
            begun.send(()).unwrap();
            gate.recv_timeout(DEADLINE).unwrap();
        };
        submit(does(blocks), &stays, "first");
        began.recv_timeout(DEADLINE).unwrap();
        for _ in 0..10 * ROOM {
            submit(does(|| panic!("an unwanted job runs")), &leaves, "never");
        }
        drop(leaves);
        for _ in 0..100 * ROOM {
            submit(does(|| panic!("an unwanted job runs")), &Arc::new(()), "never");
        }
        assert!(lock(&pool.0.jobs).len() <= 20 * ROOM, "unwanted jobs are kept");
        submit(does(|| ()), &stays, "last");
        go_on.send(()).unwrap();
        let came = [(), ()].map(|()| results.recv_timeout(DEADLINE).unwrap());
        assert_eq!(came, ["first", "last"]);
    }
}
