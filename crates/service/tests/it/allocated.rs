//! How much memory a test has allocated.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn add(bytes: usize) {
    BYTES.set(BYTES.get().wrapping_add_unsigned(bytes));
    MOST.set(MOST.get().max(BYTES.get()));
}

// SAFETY: all calls go to the allocator of the system. Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub_unsigned(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What this thread has allocated and not freed, in bytes.
pub fn bytes() -> isize {
    MOST.set(BYTES.get());
    BYTES.get()
}

/// The most that it was since the last call of [`bytes`].
pub fn most() -> isize {
    MOST.get()
}
