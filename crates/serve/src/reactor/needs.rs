//! Jobs, and letters to and from other cores.

use super::Reactor;
use crate::{
    job,
    offload::{Desk, Done},
};
use regatta_engine::{Conn, Engine, Job, Task};
use regatta_sys::Readiness;
use std::io;

impl<E: Engine, R: Readiness> Reactor<'_, E, R> {
    // ---- jobs and letters ----

    /// Does the jobs that replies have turned out to need, or has them done.
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

    /// Posts letters to the other cores. Before a reply is sent that says so.
    #[inline]
    pub(super) fn post(&mut self) {
        self.seat.post(&mut self.core);
    }

    /// Takes what was posted before an event that is handed over next.
    #[inline]
    pub(super) fn hear_first(&mut self) -> io::Result<()> {
        match &self.seat.letters {
            Some(letters) if E::POSTS && letters.has_any() => self.hear(),
            _ => Ok(()),
        }
    }

    pub(super) fn hear(&mut self) -> io::Result<()> {
        let letters = self.seat.letters.as_ref().map(|letters| letters.take()).unwrap_or_default();
        for letter in letters {
            self.core.heard(letter);
            if self.core.is_crowded() {
                self.flush_changed()?;
            }
        }
        Ok(())
    }
}
