//! A counter that a process shares with its forked children.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::{io, ops::Deref, ptr::NonNull, sync::atomic::AtomicUsize};

/// A number in memory that stays shared across fork(2).
#[derive(Debug)]
pub struct SharedCounter(NonNull<AtomicUsize>);

// SAFETY: it is a pointer to an atomic in its own mapping, which exists until the drop. Atomics may
// be used from any thread.
unsafe impl Send for SharedCounter {}
// SAFETY: as above.
unsafe impl Sync for SharedCounter {}

impl SharedCounter {
    /// Creates a counter with value 0. Fails if out of memory.
    pub fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel does not affect other memory.
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size_of::<usize>(), access, MapFlags::SHARED)
        }?;
        // A mapping is zeroed, page-aligned, and never at address 0.
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
        // SAFETY: the mapping is ours, and `self` was the last pointer into it.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<usize>()) };
    }
}
