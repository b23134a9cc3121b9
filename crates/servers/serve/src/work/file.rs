//! Reads a whole regular file with the minimum of system calls that proves it is complete: open,
//! fstat, a read, a read that finds the end, close.

use rustix::{
    buffer::spare_capacity,
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::{Errno, read as read_some},
};
use std::{
    ffi::CStr,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Maximum size of a file in bytes. A longer file is an error.
pub(crate) const MAX_FILE: usize = 1 << 20;

/// Capacity of a new buffer: 64 KiB, plus some space for the read that finds the end.
const ROOM: usize = 68 * 1024;

/// Maximum number of buffers kept. Reading does not block, so hardly more buffers are in use than
/// there are cores. A few buffers that are reused often stay in the CPU's caches.
const KEPT: usize = 16;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Vec<u8>>> {
    // Nothing panics under the lock.
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a buffer to read into.
pub(crate) fn buffer() -> Vec<u8> {
    let kept = spare().pop();
    kept.unwrap_or_else(|| Vec::with_capacity(ROOM))
}

/// Keeps a buffer for later reads.
pub(crate) fn give_back(buffer: Vec<u8>) {
    let mut spare = spare();
    if spare.len() < KEPT {
        spare.push(buffer);
    }
}

/// Reads a whole file into `content`, replacing its contents.
///
/// # Errors
/// Those of the system calls, `FileTooLarge` beyond [`MAX_FILE`], `InvalidInput` if it is not a
/// regular file.
pub(crate) fn read(path: &CStr, content: &mut Vec<u8>) -> io::Result<()> {
    content.clear();
    // Opening a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(CWD, path, flags, Mode::empty())?;
    if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    loop {
        if content.len() > MAX_FILE {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file is longer than 1 MiB",
            ));
        }
        content.reserve(1);
        match read_some(&file, spare_capacity(content)) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
