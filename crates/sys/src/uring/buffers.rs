//! The buffers that a ring receives into: memory that the kernel chooses from when bytes come
//! (io_uring_register_buf_ring(3)), so that a connection that waits holds none.

use io_uring::{IoUring, types::BufRingEntry};
use std::{
    io,
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

/// How many there are, a power of two. One turn takes about 20 connections on kernels since 6.13,
/// all that are ready on older ones; where they do not suffice, receives start again.
pub(super) const COUNT: u16 = 128;
/// Bytes of each: a long request fits, and many short ones.
pub(super) const BYTES: usize = 1024;
/// The group's number within its ring, which has only this one.
pub(super) const GROUP: u16 = 0;

/// Bytes that came. To be given back to its ring; otherwise that has one buffer less.
#[derive(Debug)]
pub struct Buffer {
    id: u16,
    len: usize,
}

/// What is shared with the kernel: the entries, which a page must begin with, and the bytes.
#[repr(C, align(4096))]
struct Shared {
    entries: [Entry; COUNT as usize],
    bytes: [[u8; BYTES]; COUNT as usize],
}

/// `struct io_uring_buf`; what is reserved of the first one is the ring's tail.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    address: u64,
    len: u32,
    id: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Entry>() == size_of::<BufRingEntry>() && COUNT.is_power_of_two());

/// The buffers of one ring, in the kernel's hands or lent to the caller.
pub(super) struct Buffers {
    shared: NonNull<Shared>,
    tail: u16,
    /// Which are not the kernel's now: only these are read here.
    lent: [bool; COUNT as usize],
}

impl Buffers {
    /// Registers them with `ring`, in which no receive has started. They must be leaked if the
    /// ring ends with receives under way.
    pub(super) fn new(ring: &IoUring) -> io::Result<Self> {
        let layout = std::alloc::Layout::new::<Shared>();
        // SAFETY: the layout is not of size zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Shared>();
        let Some(shared) = NonNull::new(memory) else { std::alloc::handle_alloc_error(layout) };
        let lent = [true; COUNT as usize];
        let mut buffers = Buffers { shared, tail: 0, lent };
        // SAFETY: the memory begins with a page, holds as many entries, and is freed only by our
        // `Drop`, which comes after the ring's or not at all (see `Ring`).
        unsafe {
            let address = shared.as_ptr() as u64;
            ring.submitter().register_buf_ring_with_flags(address, COUNT, GROUP, 0)?;
        }
        for id in 0..COUNT {
            buffers.give_back(Buffer { id, len: 0 });
        }
        Ok(buffers)
    }

    /// Takes over the buffer that the kernel tells it has filled with `len` bytes.
    pub(super) fn filled(&mut self, id: u16, len: usize) -> Buffer {
        assert!(len <= BYTES && !self.lent[id as usize], "a buffer that the kernel was given");
        self.lent[id as usize] = true;
        Buffer { id, len }
    }

    pub(super) fn bytes(&self, buffer: &Buffer) -> &[u8] {
        assert!(self.lent[buffer.id as usize], "a buffer of this ring");
        // SAFETY: in bounds, initialised (zeroed at first), and not the kernel's while it is lent;
        // giving it back borrows `self` exclusively, which ends this borrow.
        unsafe {
            let first = (&raw const (*self.shared.as_ptr()).bytes[buffer.id as usize]).cast();
            std::slice::from_raw_parts(first, buffer.len)
        }
    }

    pub(super) fn give_back(&mut self, buffer: Buffer) {
        let id = buffer.id as usize;
        assert!(self.lent[id], "a buffer of this ring");
        self.lent[id] = false;
        let at = (self.tail % COUNT) as usize;
        // SAFETY: in bounds. The kernel reads entries before the tail only, and this one lies
        // behind it, since no more than `COUNT` are given. The tail, the last field of the first
        // entry, is left alone until the entry is written, then set with release as the kernel
        // wants it.
        unsafe {
            let shared = self.shared.as_ptr();
            let entry = &raw mut (*shared).entries[at];
            (&raw mut (*entry).address).write((&raw mut (*shared).bytes[id]) as u64);
            (&raw mut (*entry).len).write(BYTES as u32);
            (&raw mut (*entry).id).write(id as u16);
            self.tail = self.tail.wrapping_add(1);
            let tail = &raw mut (*shared).entries[0].reserved;
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the kernel has no operation on it (see `Ring`).
        unsafe {
            std::alloc::dealloc(self.shared.as_ptr().cast(), std::alloc::Layout::new::<Shared>())
        };
    }
}
