//! Reply slots: replies are written in the order of their requests, in whatever order their jobs finish; or, if their
//! protocol needs no order ([`Job::IN_ORDER`]), in the order in which they are made.

use crate::{Flow, Job, JobId, connection::link::OUTPUT_FULL};
use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Weak},
};

/// Maximum number of jobs in flight per connection. At this limit its input is not read.
const MOST: usize = 64;

/// The replies of a connection, starting with the first deferred one.
#[derive(Debug)]
pub struct Slots<J> {
    /// In the order of the requests. If there are any, the first one waits for its job, or for
    /// [`Slots::flush`]. Without an order, those that wait for jobs are only the places of their buffers.
    slots: VecDeque<Slot>,
    /// Deferred jobs that the model has not taken yet.
    jobs: VecDeque<(JobId, J)>,
    /// Number of slots that wait for their jobs.
    waiting: usize,
    /// Without an order: what the connection does once no job is waited for.
    at_end: Flow,
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
        Slots { slots, jobs, waiting: 0, at_end: Flow::Continue, wanted: Arc::default() }
    }
}

impl<J: Job> Slots<J> {
    /// Whether no reply is pending, so that new replies can be written at once.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether a new reply must be written into [`Slots::room`]. Otherwise it can be written at once.
    pub fn holds_back(&self) -> bool {
        if J::IN_ORDER {
            !self.is_empty()
        } else {
            self.slots.len() > self.waiting || self.is_full()
        }
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
        let Some(at) = self.slots.iter().position(|slot| slot.job == Some(id)) else { return };
        self.waiting -= 1;
        if !J::IN_ORDER {
            // What is written changes the state of the connection, so it follows all that was written before.
            self.slots.remove(at).into_iter().for_each(|slot| spare::keep(slot.reply));
            let flow = write(self.back());
            self.close(flow);
        } else if let Some(slot) = self.slots.get_mut(at) {
            slot.flow = write(&mut slot.reply);
            slot.job = None;
        }
    }

    /// The buffer behind all replies.
    fn back(&mut self) -> &mut Vec<u8> {
        if self.slots.back().is_none_or(|last| last.job.is_some()) {
            self.slots.push_back(Slot { job: None, reply: spare::take(), flow: Flow::Continue });
        }
        let last = self.slots.len() - 1;
        &mut self.slots[last].reply
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
        Some(self.back())
    }

    /// Whether [`Slots::room`] returns `None`.
    pub fn is_full(&self) -> bool {
        let bytes: usize = self.slots.iter().map(|slot| slot.reply.len()).sum();
        self.waiting >= MOST || bytes >= OUTPUT_FULL || self.is_closed()
    }

    /// Whether the connection closes after the last of these replies.
    pub fn is_closed(&self) -> bool {
        let flow =
            if J::IN_ORDER { self.slots.back().map(|last| last.flow) } else { Some(self.at_end) };
        flow.is_some_and(|flow| flow != Flow::Continue)
    }

    /// Sets what the connection does after the last of these replies.
    pub fn close(&mut self, flow: Flow) {
        if !J::IN_ORDER {
            if flow != Flow::Continue {
                self.at_end = flow;
            }
        } else if let Some(last) = self.slots.back_mut() {
            last.flow = flow;
        }
    }

    /// Appends the replies that are ready, in order. Replies after one that closes the connection
    /// are dropped.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Flow {
        if !J::IN_ORDER {
            return self.flush_ready(out);
        }
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

    /// Without an order: appends all replies that are ready.
    fn flush_ready(&mut self, out: &mut Vec<u8>) -> Flow {
        self.slots.retain_mut(|Slot { job, reply, .. }| {
            if job.is_none() {
                out.extend_from_slice(reply);
                spare::keep(mem::take(reply));
            }
            job.is_some()
        });
        if self.is_empty() && self.is_closed() {
            return mem::take(self).at_end;
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

    struct Nothing<const IN_ORDER: bool>;

    impl<const IN_ORDER: bool> Job for Nothing<IN_ORDER> {
        const IN_ORDER: bool = IN_ORDER;

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

    /// Slots that wait for this number of jobs, and the jobs.
    fn waiting<const IN_ORDER: bool>(jobs: usize) -> (Slots<Nothing<IN_ORDER>>, Vec<JobId>) {
        let mut slots = Slots::default();
        (0..jobs).for_each(|_| slots.defer(Nothing));
        let ids = std::iter::from_fn(|| slots.next_job()).map(|(id, _)| id).collect();
        (slots, ids)
    }

    /// Writes this reply.
    fn says(text: &str, flow: Flow) -> impl FnOnce(&mut Vec<u8>) -> Flow {
        move |reply| {
            reply.extend_from_slice(text.as_bytes());
            flow
        }
    }

    fn flushed<const IN_ORDER: bool>(slots: &mut Slots<Nothing<IN_ORDER>>) -> (String, Flow) {
        let mut out = Vec::new();
        let flow = slots.flush(&mut out);
        (String::from_utf8(out).unwrap(), flow)
    }

    #[test]
    fn in_order_a_reply_waits_for_the_job_before_it() {
        let (mut slots, jobs) = waiting::<true>(2);
        assert!(slots.holds_back());
        slots.room().unwrap().push(b'c');
        slots.finish(jobs[1], says("b", Flow::Continue));
        assert_eq!(flushed(&mut slots), (String::new(), Flow::Continue));
        slots.finish(jobs[0], says("a", Flow::Continue));
        assert_eq!(flushed(&mut slots), ("abc".to_owned(), Flow::Continue));
        assert!(slots.is_empty() && !slots.holds_back());
    }

    #[test]
    fn without_an_order_replies_are_sent_as_they_are_made() {
        let (mut slots, jobs) = waiting::<false>(3);
        assert!(!slots.holds_back(), "what needs no job does not wait");
        slots.finish(jobs[1], says("b", Flow::Continue));
        assert!(slots.holds_back(), "it must not come before what is ready");
        slots.room().unwrap().push(b'x');
        slots.defer(Nothing);
        slots.finish(jobs[0], says("a", Flow::Continue));
        slots.finish(jobs[0], says("twice", Flow::Continue));
        assert_eq!(flushed(&mut slots), ("bxa".to_owned(), Flow::Continue));
        assert!(!slots.holds_back() && !slots.is_empty());
        slots.finish(jobs[2], says("c", Flow::Continue));
        assert_eq!(flushed(&mut slots), ("c".to_owned(), Flow::Continue));
        let (last, _) = slots.next_job().unwrap();
        slots.finish(last, says("d", Flow::Continue));
        assert_eq!(flushed(&mut slots), ("d".to_owned(), Flow::Continue));
        assert!(slots.is_empty());
    }

    #[test]
    fn without_an_order_a_connection_closes_after_all_jobs() {
        let (mut slots, jobs) = waiting::<false>(2);
        slots.finish(jobs[1], says("b", Flow::Close));
        assert!(slots.is_closed() && slots.holds_back() && slots.room().is_none());
        assert_eq!(flushed(&mut slots), ("b".to_owned(), Flow::Continue));
        slots.finish(jobs[0], says("a", Flow::Continue));
        assert_eq!(flushed(&mut slots), ("a".to_owned(), Flow::Close));
        assert!(slots.is_empty() && !slots.is_closed());
    }

    #[test]
    fn without_an_order_the_jobs_are_limited_too() {
        let (mut slots, jobs) = waiting::<false>(MOST);
        assert!(slots.holds_back() && slots.room().is_none());
        slots.finish(jobs[5], says("a", Flow::Continue));
        assert_eq!(flushed(&mut slots), ("a".to_owned(), Flow::Continue));
        assert!(!slots.holds_back() && !slots.is_full());
    }

    #[test]
    fn the_jobs_the_bytes_and_an_end_are_each_enough_to_fill_the_slots() {
        let (mut jobs, _) = waiting::<true>(MOST - 1);
        assert!(!jobs.is_full());
        jobs.defer(Nothing);
        assert!(jobs.is_full() && jobs.room().is_none());

        let (mut bytes, _) = waiting::<true>(1);
        bytes.room().unwrap().resize(OUTPUT_FULL - 1, 0);
        assert!(!bytes.is_full());
        bytes.room().unwrap().push(0);
        assert!(bytes.is_full() && bytes.room().is_none());

        let (mut closed, _) = waiting::<true>(1);
        closed.close(Flow::Close);
        assert!(closed.is_full() && closed.room().is_none());
    }
}
