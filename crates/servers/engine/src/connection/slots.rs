//! Ordered reply slots: replies are written in the order of their requests, in whatever order their
//! jobs finish.

use crate::{Flow, Job, JobId, connection::link::OUTPUT_FULL};
use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

/// Maximum number of jobs in flight per connection. At this limit its input is not read.
const MOST: usize = 64;

/// The replies of a connection, starting with the first deferred one.
#[derive(Debug)]
pub struct Slots<J> {
    /// In the order of the requests. If there are any, the first one waits for its job, or for
    /// [`Slots::flush`].
    slots: VecDeque<Slot>,
    /// Deferred jobs that the model has not taken yet.
    jobs: VecDeque<(JobId, J)>,
    /// Number of slots that wait for their jobs.
    waiting: usize,
    /// Dropped with these slots, which makes every [`Slots::wanted`] stale.
    wanted: Arc<()>,
}

#[derive(Debug)]
struct Slot {
    /// The job that it waits for.
    job: Option<JobId>,
    /// One reply, or several that needed no job.
    reply: Vec<u8>,
    /// What the connection does after this reply.
    flow: Flow,
}

impl<J> Default for Slots<J> {
    fn default() -> Self {
        let (slots, jobs) = (VecDeque::new(), VecDeque::new());
        Slots { slots, jobs, waiting: 0, wanted: Arc::default() }
    }
}

impl<J: Job> Slots<J> {
    /// Whether no reply is pending, so that new replies can be written at once.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes the next deferred job.
    pub fn next_job(&mut self) -> Option<(JobId, J)> {
        self.jobs.pop_front()
    }

    /// A token for the jobs that were taken. It can no longer be upgraded once nobody waits for the
    /// replies.
    pub fn wanted(&self) -> Weak<()> {
        Arc::downgrade(&self.wanted)
    }

    /// Finishes a job: `write` appends its reply. `write` is not called for a job of another
    /// connection, e.g. one that had the same index before.
    pub fn finish(&mut self, id: JobId, write: impl FnOnce(&mut Vec<u8>) -> Flow) {
        if let Some(slot) = self.waiting_for(id) {
            slot.flow = write(&mut slot.reply);
            slot.job = None;
            self.waiting -= 1;
        }
    }

    fn waiting_for(&mut self, id: JobId) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.job == Some(id))
    }

    /// Reserves a slot for the reply of a job.
    pub fn defer(&mut self, job: J) {
        let id = JobId::new();
        self.slots.push_back(Slot { job: Some(id), reply: spare::take(), flow: Flow::Continue });
        self.jobs.push_back((id, job));
        self.waiting += 1;
    }

    /// The buffer for the next reply; `None` while too many replies are pending, or once the
    /// connection is to close.
    pub fn room(&mut self) -> Option<&mut Vec<u8>> {
        if self.is_full() {
            return None;
        }
        if self.slots.back().is_none_or(|last| last.job.is_some()) {
            self.slots.push_back(Slot { job: None, reply: spare::take(), flow: Flow::Continue });
        }
        self.slots.back_mut().map(|last| &mut last.reply)
    }

    /// Whether [`Slots::room`] returns `None`.
    pub fn is_full(&self) -> bool {
        let bytes: usize = self.slots.iter().map(|slot| slot.reply.len()).sum();
        self.waiting >= MOST || bytes >= OUTPUT_FULL || self.is_closed()
    }

    /// Whether the connection closes after the last of these replies.
    pub fn is_closed(&self) -> bool {
        self.slots.back().is_some_and(|last| last.flow != Flow::Continue)
    }

    /// Sets what the connection does after the last of these replies.
    pub fn close(&mut self, flow: Flow) {
        if let Some(last) = self.slots.back_mut() {
            last.flow = flow;
        }
    }

    /// Appends the replies that are ready, in order. Replies after one that closes the connection
    /// are dropped.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Flow {
        while let Some(Slot { reply, flow, .. }) = self.slots.pop_front_if(|s| s.job.is_none()) {
            out.extend_from_slice(&reply);
            spare::keep(reply);
            if flow != Flow::Continue {
                *self = Slots::default();
                return flow;
            }
        }
        Flow::Continue
    }
}

/// Reply buffers kept per thread, so that deferring does not allocate in the steady state.
mod spare {
    use std::cell::RefCell;

    /// Maximum number of buffers kept, and maximum size of each in bytes.
    const KEPT: usize = 64;
    const BYTES: usize = 1024;

    thread_local! {
        static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    pub(crate) fn take() -> Vec<u8> {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    pub(crate) fn keep(mut memory: Vec<u8>) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT && memory.capacity() <= BYTES {
                memory.clear();
                spare.push(memory);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Now;
    use std::{ffi::CStr, io};

    struct Nothing;

    impl Job for Nothing {
        fn file(&self) -> &Arc<CStr> {
            unreachable!("it is not run")
        }

        fn is_short(&self) -> bool {
            true
        }

        fn finish(self, _: Now, _: io::Result<&[u8]>, _: &mut Vec<u8>) -> Flow {
            Flow::Continue
        }
    }

    #[test]
    fn the_jobs_the_bytes_and_an_end_are_each_enough_to_fill_the_slots() {
        let mut jobs = Slots::default();
        (1..MOST).for_each(|_| jobs.defer(Nothing));
        assert!(!jobs.is_full());
        jobs.defer(Nothing);
        assert!(jobs.is_full() && jobs.room().is_none());

        let mut bytes = Slots::default();
        bytes.defer(Nothing);
        bytes.room().unwrap().resize(OUTPUT_FULL - 1, 0);
        assert!(!bytes.is_full());
        bytes.room().unwrap().push(0);
        assert!(bytes.is_full() && bytes.room().is_none());

        let mut closed = Slots::default();
        closed.defer(Nothing);
        closed.close(Flow::Close);
        assert!(closed.is_full() && closed.room().is_none());
    }
}
