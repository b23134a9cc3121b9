//! The buffers that a ring receives into: memory that the kernel chooses from when bytes come
//! (io_uring_register_buf_ring(3)), so that a connection that waits holds none.
//!
//! Where the kernel can (Linux 6.12), it fills a buffer piece by piece: a short request takes no more
//! room than it has bytes, so what is in use stays small and in the CPU's caches, and a long batch
//! comes in one piece. Elsewhere each piece takes a whole buffer.

use io_uring::{IoUring, types::BufRingEntry};
use std::{
    io,
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

/// How many there are, a power of two.
pub(super) const COUNT: u16 = 16;
/// Bytes of each.
pub(super) const BYTES: usize = 16 * 1024;
/// The group's number within its ring, which has only this one.
pub(super) const GROUP: u16 = 0;
/// `IOU_PBUF_RING_INC`: buffers are filled piece by piece.
const PIECE_BY_PIECE: u16 = 2;

/// Bytes that came. To be given back to its ring; otherwise that has one buffer less.
#[derive(Debug)]
pub struct Buffer {
    id: u16,
    at: usize,
    len: usize,
    /// The kernel puts nothing more into this buffer.
    last: bool,
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

/// What is known of a buffer.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Up to here the kernel has filled it, and writes no more.
    filled: usize,
    /// Pieces that are lent to the caller.
    lent: u32,
    /// The kernel puts nothing more into it.
    done: bool,
}

/// The buffers of one ring, in the kernel's hands or lent to the caller.
pub(super) struct Buffers {
    shared: NonNull<Shared>,
    tail: u16,
    parts: [Part; COUNT as usize],
}

impl Buffers {
    /// Registers them with `ring`, in which no receive has started. They must be leaked if the
    /// ring ends with receives under way.
    pub(super) fn new(ring: &IoUring) -> io::Result<Self> {
        let layout = std::alloc::Layout::new::<Shared>();
        // SAFETY: the layout is not of size zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Shared>();
        let Some(shared) = NonNull::new(memory) else { std::alloc::handle_alloc_error(layout) };
        let mut buffers = Buffers { shared, tail: 0, parts: [Part::default(); COUNT as usize] };
        let address = shared.as_ptr() as u64;
        let register = |flags| {
            let submitter = ring.submitter();
            // SAFETY: the memory begins with a page, holds as many entries, and is freed only by our
            // `Drop`, which comes after the ring's or not at all (see `Ring`).
            unsafe { submitter.register_buf_ring_with_flags(address, COUNT, GROUP, flags) }
        };
        register(PIECE_BY_PIECE).or_else(|_| register(0))?;
        for id in 0..COUNT {
            buffers.offer(id);
        }
        Ok(buffers)
    }

    /// Takes over what the kernel reports to have put into a buffer: `len` bytes. `more`: it will put
    /// others behind them.
    pub(super) fn filled(&mut self, id: u16, len: usize, more: bool) -> Buffer {
        let part = &mut self.parts[id as usize];
        assert!(!part.done && part.filled + len <= BYTES, "a buffer that the kernel was given");
        let at = part.filled;
        part.filled += len;
        part.lent += 1;
        part.done = !more;
        Buffer { id, at, len, last: !more }
    }

    pub(super) fn bytes(&mut self, buffer: &mut Buffer) -> &mut [u8] {
        assert!(self.parts[buffer.id as usize].lent > 0, "a buffer of this ring");
        // SAFETY: in bounds, initialised (zeroed at first), and the kernel does not write before the
        // end of what it has filled, until the buffer is offered again, which is when all pieces are
        // given back. No other piece has these bytes, and `self` is borrowed exclusively.
        unsafe {
            let all: *mut u8 = (&raw mut (*self.shared.as_ptr()).bytes[buffer.id as usize]).cast();
            std::slice::from_raw_parts_mut(all.add(buffer.at), buffer.len)
        }
    }

    pub(super) fn give_back(&mut self, buffer: Buffer) {
        let part = &mut self.parts[buffer.id as usize];
        assert!(part.lent > 0, "a buffer of this ring");
        part.lent -= 1;
        debug_assert!(!buffer.last || part.done);
        if part.done && part.lent == 0 {
            self.offer(buffer.id);
        }
    }

    /// Gives a whole buffer to the kernel.
    fn offer(&mut self, id: u16) {
        self.parts[id as usize] = Part::default();
        let at = (self.tail % COUNT) as usize;
        // SAFETY: in bounds. The kernel reads entries before the tail only, and this one lies
        // behind it, since no more than `COUNT` are given. The tail, the last field of the first
        // entry, is left alone until the entry is written, then set with release as the kernel
        // wants it.
        unsafe {
            let shared = self.shared.as_ptr();
            let entry = &raw mut (*shared).entries[at];
            (&raw mut (*entry).address).write((&raw mut (*shared).bytes[id as usize]) as u64);
            (&raw mut (*entry).len).write(BYTES as u32);
            (&raw mut (*entry).id).write(id);
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
