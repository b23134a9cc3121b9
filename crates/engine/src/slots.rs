//! Ordered reply slots: replies go out in the order of their requests, whatever the order in which
//! their jobs are done.

use crate::{Flow, Job, JobId, link::OUTPUT_FULL};
use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

/// Jobs that one connection may have under way. Beyond it, its input waits.
const MOST: usize = 64;

/// The replies of a connection from its first deferred one on.
#[derive(Debug)]
pub struct Slots<J> {
    /// In the order of the requests. The first waits for its job, or there is none.
    slots: VecDeque<Slot>,
    /// Deferred, and not taken by the model yet.
    jobs: VecDeque<(JobId, J)>,
    /// How many slots wait for their jobs.
    waiting: usize,
    /// Goes with these.
    wanted: Arc<()>,
}

#[derive(Debug)]
struct Slot {
    /// The job that it waits for.
    job: Option<JobId>,
    /// One reply, or several that needed no job.
    reply: Vec<u8>,
    /// What the connection does after it.
    flow: Flow,
}

impl<J> Default for Slots<J> {
    fn default() -> Self {
        let (slots, jobs) = (VecDeque::new(), VecDeque::new());
        Slots { slots, jobs, waiting: 0, wanted: Arc::default() }
    }
}

impl<J: Job> Slots<J> {
    /// Whether replies go out at once: nothing is waited for.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The next deferred job that is to be done.
    pub fn next_job(&mut self) -> Option<(JobId, J)> {
        self.jobs.pop_front()
    }

    /// Whether the jobs that were taken are still to be done: gone once nobody waits for the replies.
    pub fn wanted(&self) -> Weak<()> {
        Arc::downgrade(&self.wanted)
    }

    /// A job is done: `write` appends its reply. It is not called for a job of another connection,
    /// which may have had the caller's number before this one.
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

    /// Keeps a place for the reply of a job.
    pub fn defer(&mut self, job: J) {
        let id = JobId::new();
        self.slots.push_back(Slot { job: Some(id), reply: spare::take(), flow: Flow::Continue });
        self.jobs.push_back((id, job));
        self.waiting += 1;
    }

    /// Where the next reply goes; `None` as long as too much is owed already, or once the
    /// connection is to end.
    pub fn room(&mut self) -> Option<&mut Vec<u8>> {
        if self.is_full() {
            return None;
        }
        if self.slots.back().is_none_or(|last| last.job.is_some()) {
            self.slots.push_back(Slot { job: None, reply: spare::take(), flow: Flow::Continue });
        }
        self.slots.back_mut().map(|last| &mut last.reply)
    }

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        let bytes: usize = self.slots.iter().map(|slot| slot.reply.len()).sum();
        self.waiting >= MOST || bytes >= OUTPUT_FULL || self.is_closed()
    }

    /// Whether the connection ends after the last of these replies.
    pub fn is_closed(&self) -> bool {
        self.slots.back().is_some_and(|last| last.flow != Flow::Continue)
    }

    /// The connection ends after the last of these replies, as `flow` says.
    pub fn close(&mut self, flow: Flow) {
        if let Some(last) = self.slots.back_mut() {
            last.flow = flow;
        }
    }

    /// Appends the replies whose turn has come. After one that ends the connection the others are
    /// dropped.
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

/// Memory for replies, of a thread, so that deferring allocates none in the steady state.
mod spare {
    use std::cell::RefCell;

    /// How many pieces are kept, and the most bytes of one.
    const KEPT: usize = 64;
    const BYTES: usize = 1024;

    thread_local! {
        static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn take() -> Vec<u8> {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    pub(super) fn keep(mut memory: Vec<u8>) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT && memory.capacity() <= BYTES {
                memory.clear();
                spare.push(memory);
            }
        });
    }
}
