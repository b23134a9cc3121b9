//! Reading a whole regular file with as few system calls as show that it is whole: open, a read, a
//! read that finds the end, close.

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

/// Longest file that is read, in bytes: a longer one is an error.
pub(crate) const MAX_FILE: usize = 1 << 20;

/// Room of a fresh buffer: 64 KiB, and some to read the end into.
const ROOM: usize = 68 * 1024;

/// Buffers that are kept. Reading does not block, so there are hardly more in use than cores; and
/// few that are used again and again stay in the CPU's caches.
const KEPT: usize = 16;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Vec<u8>>> {
    // Nothing panics under the lock.
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer to read into.
pub(crate) fn buffer() -> Vec<u8> {
    let kept = spare().pop();
    kept.unwrap_or_else(|| Vec::with_capacity(ROOM))
}

/// Keeps a buffer for others.
pub(crate) fn give_back(buffer: Vec<u8>) {
    let mut spare = spare();
    if spare.len() < KEPT {
        spare.push(buffer);
    }
}

/// Reads a whole file into `content`, in place of what is there.
///
/// # Errors
/// Those of the calls, `FileTooLarge` beyond [`MAX_FILE`], `InvalidInput` if it is no regular file.
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
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB"));
        }
        content.reserve(1);
        match read_some(&file, spare_capacity(content)) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
