//! Work that a reply needs besides its request: the bytes of a file, and a computation over them.
//! How it is met is the model's business: at once in the thread that asks, or elsewhere.

use crate::{Flow, file};
use std::{io, path::Path};

/// A need: a file's bytes, read anew for this reply, and then a computation over them.
pub trait Job: Send + 'static {
    /// The file.
    fn file(&self) -> &Path;

    /// The computation takes so little (below a millisecond) that it is not worth handing over, and
    /// must not stand in line behind those that take long.
    fn is_short(&self) -> bool;

    /// Computes over the bytes of the whole file, and appends the reply. The error of a file that
    /// could not be read has a reply too.
    fn finish(self, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow;
}

/// The job of a service that needs nothing.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl Job for Never {
    fn file(&self) -> &Path {
        match *self {}
    }

    fn is_short(&self) -> bool {
        match *self {}
    }

    fn finish(self, _: io::Result<&[u8]>, _: &mut Vec<u8>) -> Flow {
        match self {}
    }
}

/// Does a job at once, in this thread.
pub fn run<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    let mut content = file::buffer();
    let read = file::read(job.file(), &mut content);
    let flow = job.finish(read.map(|()| &content[..]), reply);
    file::give_back(content);
    flow
}
