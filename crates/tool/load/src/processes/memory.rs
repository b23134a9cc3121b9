//! Memory that the processes of one load share: an array of words that are initially zero.

use rustix::{
    fs::{MemfdFlags, memfd_create},
    mm::{MapFlags, ProtFlags, mmap},
};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    process, ptr, slice,
    sync::atomic::AtomicU64,
};

/// The leader's handle of the memory. The memory exists until this is dropped and no process maps it.
#[derive(Debug)]
pub(super) struct Memory(File);

impl Memory {
    /// Creates memory of `words` words. Pages are allocated on first use.
    pub fn new(words: usize) -> io::Result<Memory> {
        let file = File::from(memfd_create("regatta-load", MemfdFlags::CLOEXEC)?);
        file.set_len((words * size_of::<AtomicU64>()) as u64)?;
        Ok(Memory(file))
    }

    /// The path at which the leader's child processes can open it (proc_pid_fd(5)).
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }
}

/// Maps the memory at `path`, which must hold at least `words` words, for the rest of this process's
/// life.
///
/// # Errors
/// If it does not exist, is smaller, or cannot be mapped.
pub(super) fn map(path: &str, words: usize) -> io::Result<&'static [AtomicU64]> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let bytes = words * size_of::<AtomicU64>();
    let there = file.metadata()?.len();
    if there < bytes as u64 {
        let why = format!("expected {bytes} bytes of shared memory, but there are {there}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let at = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) }?;
    // SAFETY: the mapping is page-aligned, `bytes` long, and never unmapped; no process truncates the
    // file; every bit pattern is a valid atomic, and all processes access the memory only through
    // atomics.
    Ok(unsafe { slice::from_raw_parts(at.cast::<AtomicU64>(), words) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn two_mappings_share_memory_and_a_short_file_is_refused() {
        let memory = Memory::new(1_000).unwrap();
        let (one, other) =
            (map(&memory.path(), 1_000).unwrap(), map(&memory.path(), 1_000).unwrap());
        assert!(one.iter().all(|word| word.load(SeqCst) == 0));
        one[999].fetch_add(7, SeqCst);
        assert_eq!(other[999].load(SeqCst), 7);
        let error = map(&memory.path(), 1_001).unwrap_err().to_string();
        assert!(error.contains("8008 bytes") && error.contains("8000"), "{error}");
    }
}
