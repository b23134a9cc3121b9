//! Runs the callback style like the reactor, including its workers.

use crate::styles::peer::Peer;
use regatta_engine::{Conn, Core, Next, Sessions, Task};
use regatta_service::{Job, Limits, Session, SessionFactory};
use std::collections::VecDeque;

pub type JobOf<F> = <<F as SessionFactory>::Session as Session>::Job;

/// The workers of a callback server.
pub trait Workers<F: SessionFactory> {
    /// Queues a job, or runs it.
    fn take_on(&mut self, task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer);

    /// Returns whether a job runs before more input is read.
    fn are_first(&mut self) -> bool;

    /// Runs a job. Returns `false` if there is none.
    fn work(&mut self, core: &mut Core<Sessions<F>>, peer: &mut Peer) -> bool;
}

/// The loop runs short jobs at once, and long ones after writing all pending output.
pub struct AtOnce<J>(VecDeque<Task<J>>);

impl<J> Default for AtOnce<J> {
    fn default() -> Self {
        AtOnce(VecDeque::new())
    }
}

fn finish<F: SessionFactory>(task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer) {
    let Task { conn, id, job, .. } = task;
    let mut reply = Vec::new();
    let flow = peer.work(job, &mut reply);
    core.turn(peer.now());
    core.done(conn, id, |out| {
        out.extend_from_slice(&reply);
        flow
    });
}

impl<F: SessionFactory> Workers<F> for AtOnce<JobOf<F>> {
    fn take_on(&mut self, task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer) {
        match task.job.is_short() {
            true => finish(task, core, peer),
            false => self.0.push_back(task),
        }
    }

    fn are_first(&mut self) -> bool {
        !self.0.is_empty()
    }

    fn work(&mut self, core: &mut Core<Sessions<F>>, peer: &mut Peer) -> bool {
        while let Some(task) = self.0.pop_front() {
            if task.wanted.strong_count() > 0 {
                finish(task, core, peer);
                return true;
            }
        }
        false
    }
}

/// Runs jobs in any order, as on other threads.
pub struct Elsewhere<J, C> {
    pub jobs: Vec<Task<J>>,
    pub shorts_too: bool,
    pub choices: C,
}

impl<F: SessionFactory, C: Iterator<Item = usize>> Workers<F> for Elsewhere<JobOf<F>, C> {
    fn take_on(&mut self, task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer) {
        match task.job.is_short() && !self.shorts_too {
            true => finish(task, core, peer),
            false => self.jobs.push(task),
        }
        assert!(self.jobs.len() <= 64, "jobs are bounded");
    }

    fn are_first(&mut self) -> bool {
        self.choices.next().is_some_and(|choice| choice % 2 == 0)
    }

    fn work(&mut self, core: &mut Core<Sessions<F>>, peer: &mut Peer) -> bool {
        if self.jobs.is_empty() {
            return false;
        }
        let choice = self.choices.next().unwrap_or_default();
        let task = self.jobs.swap_remove(choice % self.jobs.len());
        finish(task, core, peer);
        true
    }
}

/// Runs a core with one connection, like the reactor, until the connection closes.
pub fn callback<F: SessionFactory + Clone>(
    start: &F,
    peer: &mut Peer,
    limits: Limits,
    workers: &mut impl Workers<F>,
) {
    let mut core = Core::new(Sessions::new(start.clone()), limits, peer.now());
    let conn = core.accept();
    let mut buffer = vec![0; 64 * 1024];
    let mut writable = true;
    while advance(&mut core, conn, peer, &mut writable, workers) {
        core.settle(conn);
        while core.next_changed().is_some() {}
        if workers.are_first() && workers.work(&mut core, peer) {
            continue;
        }
        let reads = core.wants_read(conn);
        if reads && peer.is_readable() {
            match peer.read_now(&mut buffer) {
                Ok(0) => core.ended(conn),
                Ok(read) => core.received(conn, &mut buffer[..read]),
                Err(_) => core.failed(conn),
            }
        } else if !workers.work(&mut core, peer) {
            let writes = !writable && !core.output(conn).is_empty();
            let due = core.due().expect("an open connection has a deadline");
            let due = peer.at(due);
            peer.wait(due, |peer| reads && peer.is_readable() || writes && peer.is_writable());
            writable |= writes && peer.is_writable();
            core.turn(peer.now());
            core.tick(peer);
        }
    }
    core.closed(conn);
    assert!(!core.has(conn));
}

/// Writes what can be written. Returns `false` when the connection must be closed.
fn advance<F: SessionFactory>(
    core: &mut Core<Sessions<F>>,
    conn: Conn,
    peer: &mut Peer,
    writable: &mut bool,
    workers: &mut impl Workers<F>,
) -> bool {
    loop {
        while let Some(task) = core.next_job() {
            workers.take_on(task, core, peer);
        }
        match core.next(conn, peer) {
            Next::Wait => return true,
            Next::Close => return false,
            Next::Write { .. } if !*writable => return true,
            Next::Write { .. } if !peer.is_writable() => {
                *writable = false;
                core.wrote(conn, 0);
            }
            Next::Write { last } => match peer.write_now(core.output(conn), last) {
                Ok(written) => {
                    *writable = written == core.output(conn).len();
                    core.wrote(conn, written);
                }
                Err(_) => core.failed(conn),
            },
            Next::ShutdownWrite => {
                let done = peer.shutdown_write().is_ok();
                core.shutdown_completed(conn, done);
            }
        }
    }
}
