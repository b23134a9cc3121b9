//! Jobs, and letters to and from other cores.

use super::{DONE, Driver, LETTERS};
use crate::{clock, letters::Letters, offload::Done};
use regatta_engine::{Engine, Job, Task};
use std::io;

impl<E: Engine> Driver<'_, E> {
    /// Starts the jobs that replies need: the ring reads the file, and this thread computes. Long
    /// jobs run completely in another thread, if there is a pool.
    pub(super) fn take_on_jobs(&mut self) {
        while let Some(task) = self.core.next_job() {
            match &self.desk {
                Some(desk) if !task.job.is_short() => desk.submit(task),
                _ => {
                    let file = std::sync::Arc::clone(task.job.file());
                    let key = self.reading.insert(task) as u32;
                    self.ring.read_file(file, key, crate::file::MAX_FILE);
                }
            }
        }
    }

    /// Finishes a job whose file has been read.
    pub(super) fn finish(&mut self, task: Task<E::Job>, result: io::Result<()>, content: Vec<u8>) {
        let Task { conn, id, job, wanted } = task;
        if wanted.strong_count() > 0 {
            let file = result.map(|()| &content[..]);
            self.core.done(conn, id, |reply| job.finish(clock::now(), file, reply));
            self.change(conn);
        }
        self.ring.give_back_content(content);
    }

    pub(super) fn take_done(&mut self) -> io::Result<()> {
        let Some(desk) = &self.desk else { return Ok(()) };
        let done = desk.take();
        self.ring.watch(desk, DONE)?;
        for Done { conn, id, reply, flow } in done {
            self.core.done(conn, id, |out| {
                out.extend_from_slice(&reply);
                flow
            });
            self.change(conn);
        }
        Ok(())
    }

    /// Posts letters to the other cores, before a reply is sent that confirms them.
    #[inline]
    pub(super) fn post(&mut self) {
        self.seat.post(&mut self.core);
    }

    /// Receives letters that were posted before the next event.
    #[inline]
    pub(super) fn hear_first(&mut self) {
        if E::POSTS && self.seat.letters.as_ref().is_some_and(Letters::has_any) {
            self.take_letters();
        }
    }

    pub(super) fn hear(&mut self) -> io::Result<()> {
        self.take_letters();
        match &self.seat.letters {
            Some(letters) => self.ring.watch(letters, LETTERS),
            None => Ok(()),
        }
    }

    pub(super) fn take_letters(&mut self) {
        let letters = self.seat.letters.as_ref().map(Letters::take).unwrap_or_default();
        for letter in letters {
            self.core.heard(letter);
            self.relieve();
        }
    }
}
