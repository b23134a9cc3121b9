//! Work that a reply needs besides its request: the bytes of a file, and a computation over them.
//! The driver does it, at once or in another thread.

use crate::{Conn, Flow, Now};
use std::{
    ffi::CStr,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A need: a file's bytes, read anew for this reply, and then a computation over them.
pub trait Job: Send + 'static {
    /// Whether there can be one. Where not, nothing is compiled for it.
    const EVER: bool = true;

    /// The file.
    fn file(&self) -> &Arc<CStr>;

    /// The computation takes less than a millisecond. It is not worth handing to another thread, and
    /// must not wait behind long ones.
    fn is_short(&self) -> bool;

    /// Computes over the bytes of the whole file, and appends the reply. A file that could not be
    /// read has a reply too. `now` is the time at which the reply is written.
    fn finish(self, now: Now, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow;
}

/// The job of a service that needs none; also the letter and the push of those that post none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}

impl Job for Never {
    const EVER: bool = false;

    fn file(&self) -> &Arc<CStr> {
        match *self {}
    }

    fn is_short(&self) -> bool {
        match *self {}
    }

    fn finish(self, _: Now, _: io::Result<&[u8]>, _: &mut Vec<u8>) -> Flow {
        match self {}
    }
}

/// Names a deferred job; no other one in this process has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(u64);

impl JobId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        JobId(NEXT.fetch_add(1, Relaxed))
    }
}

/// A job to be done for a connection.
#[derive(Debug)]
pub struct Task<J> {
    /// For whom.
    pub conn: Conn,
    /// Its name.
    pub id: JobId,
    /// What is to be done.
    pub job: J,
    /// Gone once nobody waits for it.
    pub wanted: Weak<()>,
}
