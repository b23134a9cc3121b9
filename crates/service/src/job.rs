//! Work that a reply needs besides its request: the bytes of a file, and a computation over them.
//! How it is met is the model's business: at once in the thread that asks, or elsewhere.

use crate::Flow;
use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read},
    path::Path,
};

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

/// Longest file that is read, in bytes: a longer one is an error.
pub const MAX_FILE: usize = 1 << 20;

thread_local! {
    static CONTENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Does a job at once, in this thread.
pub fn run<J: Job>(job: J, reply: &mut Vec<u8>) -> Flow {
    CONTENT.with_borrow_mut(|content| {
        let read = read(job.file(), content);
        job.finish(read.map(|()| &content[..]), reply)
    })
}

/// Reads a whole file into `content`, in place of what is there.
fn read(path: &Path, content: &mut Vec<u8>) -> io::Result<()> {
    content.clear();
    let read = File::open(path)?.take(MAX_FILE as u64 + 1).read_to_end(content)?;
    if read > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 1 MiB"));
    }
    Ok(())
}
