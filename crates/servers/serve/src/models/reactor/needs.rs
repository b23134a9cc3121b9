//! Jobs, and letters to and from other cores.

use super::{LETTERS, Reactor};
use crate::{
    between::mail::Mail,
    work::{
        job,
        offload::{Desk, Done},
    },
};
use regatta_engine::{Conn, Engine, Job, Task};
use regatta_sys::{Event, Readiness};
use std::{io, mem};

impl<E: Engine, R: Readiness, M: Mail<E::Letter>> Reactor<'_, E, R, M> {
    // ---- jobs and letters ----

    /// Runs, queues or submits the jobs that replies need.
    pub(super) fn take_on_jobs(&mut self, serving: Conn) {
        while let Some(task) = self.core.next_job() {
            match &self.desk {
                _ if task.job.is_short() => {
                    let conn = task.conn;
                    self.do_now(task);
                    if conn != serving {
                        self.core.change(conn);
                    }
                }
                Some(desk) => desk.submit(task),
                None => self.long.push_back(task),
            }
        }
    }

    pub(super) fn do_now(&mut self, task: Task<E::Job>) {
        let Task { conn, id, job, .. } = task;
        self.core.done(conn, id, |reply| job::run(job, reply));
    }

    pub(super) fn take_done(&mut self) -> io::Result<()> {
        let done = self.desk.as_ref().map(Desk::take).unwrap_or_default();
        for Done { conn, id, reply, flow } in done {
            self.core.done(conn, id, |out| {
                out.extend_from_slice(&reply);
                flow
            });
            self.serve(conn)?;
        }
        Ok(())
    }

    /// Posts letters to the other cores, before a reply is sent that confirms them.
    #[inline]
    pub(super) fn post(&mut self) {
        self.seat.post(&mut self.core);
    }

    /// Whether other cores have posted something.
    #[inline]
    pub(super) fn has_letters(&self) -> bool {
        self.unheard.len() > 0 || self.seat.letters.as_ref().is_some_and(Mail::has_any)
    }

    /// Whether the other cores still need this one, which has no clients and accepts none.
    pub(super) fn is_needed(&mut self) -> bool {
        E::POSTS && self.seat.letters.as_mut().is_some_and(Mail::is_needed)
    }

    /// Receives letters that were posted before the next event.
    #[inline]
    pub(super) fn hear_first(&mut self) -> io::Result<()> {
        if E::POSTS && self.has_letters() { self.hear() } else { Ok(()) }
    }

    /// Handles an event of a source: there are letters, or there is room for some.
    pub(super) fn hear_of(&mut self, source: usize, event: &Event) -> io::Result<()> {
        if let Some(letters) = &mut self.seat.letters {
            letters.ready(source, event);
        }
        self.hear()
    }

    /// Delivers letters. After many pushes, the others wait for the next turn. Only when all are
    /// delivered, the next ones are taken, so that those who post see how many are pending.
    pub(super) fn hear(&mut self) -> io::Result<()> {
        if self.unheard.len() == 0
            && let Some(letters) = &mut self.seat.letters
        {
            self.unheard = letters.take()?.into_iter();
        }
        while self.core.may_hear()
            && let Some(letter) = self.unheard.next()
        {
            self.core.heard(letter);
            if self.core.take_flush_request() {
                self.flush_changed(usize::MAX)?;
            }
        }
        Ok(())
    }

    // ---- connections that are not read because too many letters are pending ----

    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.seat.letters.as_ref().is_some_and(Mail::is_full)
    }

    pub(super) fn hold(&mut self, conn: Conn) {
        if let Some(slot) = self.sockets.get_mut(conn)
            && !mem::replace(&mut slot.driver.held, true)
        {
            self.held.push(conn);
        }
    }

    /// Called before a wait. Once there is room again, all held connections are read.
    pub(super) fn settle_letters(&mut self) -> io::Result<()> {
        let Some(letters) = &mut self.seat.letters else { return Ok(()) };
        letters.settle(&mut self.readiness, LETTERS)?;
        if !letters.is_full() {
            for conn in mem::take(&mut self.held) {
                if let Some(slot) = self.sockets.get_mut(conn) {
                    slot.driver.held = false;
                    self.continue_later(conn);
                }
            }
        }
        Ok(())
    }
}
