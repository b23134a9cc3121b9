//! Jobs, letters to and from other cores, and large output that is written at once.

use super::{DONE, Driver, LETTERS};
use crate::{between::letters::Letters, clock, work::offload::Done};
use regatta_engine::{Engine, Job, Task};
use regatta_sys::net;
use std::{io, mem};

impl<E: Engine> Driver<'_, E> {
    /// Starts the jobs that replies need: the ring reads the file, and this thread computes. Long
    /// jobs run completely in another thread, if there is a pool.
    pub(super) fn take_on_jobs(&mut self) {
        while let Some(task) = self.core.next_job() {
            match &self.desk {
                Some(desk) if !task.job.is_short() => desk.submit(task),
                _ => {
                    let file = std::sync::Arc::clone(task.job.file());
                    self.short_reads += usize::from(task.job.is_short());
                    let key = self.reading.insert(task) as u32;
                    self.ring.read_file(file, key, crate::work::file::MAX_FILE);
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
        if E::POSTS && self.has_letters() {
            self.take_letters();
        }
    }

    /// Whether other cores have posted something.
    #[inline]
    pub(super) fn has_letters(&self) -> bool {
        self.unheard.len() > 0 || self.seat.letters.as_ref().is_some_and(Letters::has_any)
    }

    /// Whether the other cores still need this one, which has no clients and accepts none.
    pub(super) fn is_needed(&self) -> bool {
        E::POSTS && self.seat.letters.as_ref().is_some_and(Letters::is_needed)
    }

    pub(super) fn hear(&mut self) -> io::Result<()> {
        self.take_letters();
        match &self.seat.letters {
            Some(letters) => self.ring.watch(letters, LETTERS),
            None => Ok(()),
        }
    }

    /// Delivers letters. After many pushes, the others wait for the next turn. Only when all are
    /// delivered, the next ones are taken, so that those who post see how many are pending.
    pub(super) fn take_letters(&mut self) {
        if self.unheard.len() == 0
            && let Some(letters) = &mut self.seat.letters
        {
            self.unheard = letters.take().into_iter();
        }
        while self.core.may_hear()
            && let Some(letter) = self.unheard.next()
        {
            self.core.heard(letter);
            self.relieve();
        }
    }

    // ---- connections that are not read because too many letters are pending ----

    #[inline]
    pub(super) fn is_held(&self) -> bool {
        E::POSTS && self.seat.letters.as_ref().is_some_and(Letters::is_full)
    }

    /// Called before a wait. Once there is room again, all held connections are read.
    pub(super) fn settle_letters(&mut self) {
        if !E::POSTS {
            return;
        }
        let Some(letters) = &mut self.seat.letters else { return };
        letters.settle();
        if !letters.is_full() {
            for conn in mem::take(&mut self.held) {
                if let Some(slot) = self.sockets.get_mut(conn) {
                    slot.driver.held = false;
                    self.change(conn);
                }
            }
        }
    }

    /// Writes large output at once, without the ring, because many events of one turn may push to
    /// the same connection.
    #[inline]
    pub(super) fn relieve(&mut self) {
        if !(E::POSTS && self.core.take_flush_request()) {
            return;
        }
        self.post();
        while let Some(conn) = self.core.next_changed() {
            self.change(conn);
            let Some(slot) = self.sockets.get(conn) else { continue };
            let output = self.core.output(conn);
            if slot.driver.sending.is_some() || slot.driver.closing || output.is_empty() {
                continue;
            }
            match net::write_now(&slot.fd, output, false) {
                Ok(written) => self.core.wrote(conn, written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.core.wrote(conn, 0);
                }
                Err(_) => self.core.failed(conn),
            }
        }
    }
}
