//! Work that a reply needs: the bytes of a file, and a computation over them. The driver runs it:
//! at once, in a later turn, or in another thread.

use crate::{Conn, Flow, Now};
use std::{
    ffi::CStr,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A job: reads a file anew for this reply, then computes over its bytes.
pub trait Job: Send + 'static {
    /// Whether such jobs can exist. If not, no code is compiled for them.
    const EVER: bool = true;

    /// Whether replies are sent in the order of their requests. If not, each is sent as soon as its job is done, and
    /// replies that need no job do not wait for one: protocols with streams name the request in the reply.
    const IN_ORDER: bool = true;

    /// The file.
    fn file(&self) -> &Arc<CStr>;

    /// Whether the computation takes less than a millisecond. A short job is not worth handing to
    /// another thread, and must not queue behind long ones.
    fn is_short(&self) -> bool;

    /// Computes over the bytes of the whole file, and appends the reply. It also replies if the
    /// file could not be read. `now` is the time at which the reply is written.
    fn finish(self, now: Now, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow;
}

/// The job type of a service that needs no jobs. Also the letter and push type of one that posts
/// nothing.
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

/// Identifies a deferred job, uniquely in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(u64);

impl JobId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        JobId(NEXT.fetch_add(1, Relaxed))
    }
}

/// A job to run for a connection.
#[derive(Debug)]
pub struct Task<J> {
    /// The connection that needs it.
    pub conn: Conn,
    /// Its identifier.
    pub id: JobId,
    /// The job.
    pub job: J,
    /// Cannot be upgraded once nobody waits for the job.
    pub wanted: Weak<()>,
}
