//! A counter that a process shares with the processes it forks.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::{io, ops::Deref, ptr::NonNull, sync::atomic::AtomicUsize};

/// A number in memory that stays shared across fork(2).
#[derive(Debug)]
pub struct SharedCounter(NonNull<AtomicUsize>);

// SAFETY: it is a pointer to an atomic that lives in a mapping of its own until the drop; atomics
// may be used from any thread.
unsafe impl Send for SharedCounter {}
// SAFETY: as above.
unsafe impl Sync for SharedCounter {}

impl SharedCounter {
    /// A counter at 0. Fails when out of memory.
    pub fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size_of::<usize>(), access, MapFlags::SHARED)
        }?;
        // A mapping is zeroed, aligned to a page, and never at 0.
        Ok(SharedCounter(NonNull::new(page.cast()).expect("a mapping has an address")))
    }
}

impl Deref for SharedCounter {
    type Target = AtomicUsize;

    fn deref(&self) -> &AtomicUsize {
        // SAFETY: the mapping is aligned, initialised with zeros and lives as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl AsRef<AtomicUsize> for SharedCounter {
    fn as_ref(&self) -> &AtomicUsize {
        self
    }
}

impl Drop for SharedCounter {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and `self` was the last that points into it.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<usize>()) };
    }
}
