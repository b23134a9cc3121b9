//! The receive buffers of a ring. The kernel takes one when bytes arrive
//! (io_uring_register_buf_ring(3)), so an idle connection holds none.
//!
//! Since Linux 6.12, the kernel fills a buffer incrementally. A short request uses only as much
//! space as its bytes, so the memory in use stays small and in the CPU's caches, and a long batch
//! arrives in one piece. On older kernels each piece takes a whole buffer.

use io_uring::{IoUring, types::BufRingEntry};
use std::{
    io,
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

/// Number of buffers, a power of two.
pub(super) const COUNT: u16 = 16;
/// Size of each buffer in bytes.
pub(super) const BYTES: usize = 16 * 1024;
/// The number of the buffer group. Each ring has only this one.
pub(super) const GROUP: u16 = 0;
/// `IOU_PBUF_RING_INC`: buffers are filled incrementally.
const PIECE_BY_PIECE: u16 = 2;

/// Received bytes. They must be returned to their ring; otherwise it loses a buffer.
#[derive(Debug)]
pub struct Buffer {
    id: u16,
    at: usize,
    len: usize,
    /// The kernel adds nothing more to this buffer.
    last: bool,
}

#[allow(clippy::len_without_is_empty, reason = "it is never empty")]
impl Buffer {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// The memory shared with the kernel: the entries, which must start at a page boundary, and the
/// bytes.
#[repr(C, align(4096))]
struct Shared {
    entries: [Entry; COUNT as usize],
    bytes: [[u8; BYTES]; COUNT as usize],
}

/// `struct io_uring_buf`. The reserved field of the first entry is the ring's tail.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    address: u64,
    len: u32,
    id: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Entry>() == size_of::<BufRingEntry>() && COUNT.is_power_of_two());

/// The state of a buffer.
#[derive(Clone, Copy, Default)]
struct Part {
    /// The kernel has filled the buffer up to here, and does not write to this part again.
    filled: usize,
    /// Number of pieces lent to the caller.
    lent: u32,
    /// The kernel adds nothing more to it.
    done: bool,
}

/// The buffers of one ring, each owned by the kernel or lent to the caller.
pub(super) struct Buffers {
    shared: NonNull<Shared>,
    tail: u16,
    parts: [Part; COUNT as usize],
}

impl Buffers {
    /// Registers the buffers with `ring`, before its first receive. They must be leaked if the ring
    /// is dropped with receives in flight.
    pub(super) fn new(ring: &IoUring) -> io::Result<Self> {
        let layout = std::alloc::Layout::new::<Shared>();
        // SAFETY: the layout is not of size zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Shared>();
        let Some(shared) = NonNull::new(memory) else { std::alloc::handle_alloc_error(layout) };
        let mut buffers = Buffers { shared, tail: 0, parts: [Part::default(); COUNT as usize] };
        let address = shared.as_ptr() as u64;
        let register = |flags| {
            let submitter = ring.submitter();
            // SAFETY: the memory starts at a page boundary, contains `COUNT` entries, and is freed
            // only by our `Drop`, which runs after the ring's or not at all (see `Ring`).
            unsafe { submitter.register_buf_ring_with_flags(address, COUNT, GROUP, flags) }
        };
        register(PIECE_BY_PIECE).or_else(|_| register(0))?;
        for id in 0..COUNT {
            buffers.offer(id);
        }
        Ok(buffers)
    }

    /// Takes the `len` bytes that the kernel reports to have put into a buffer. `more`: it will
    /// append others.
    pub(super) fn filled(&mut self, id: u16, len: usize, more: bool) -> Buffer {
        let part = &mut self.parts[id as usize];
        assert!(
            !part.done && part.filled + len <= BYTES,
            "the kernel filled a buffer that it does not own"
        );
        let at = part.filled;
        part.filled += len;
        part.lent += 1;
        part.done = !more;
        Buffer { id, at, len, last: !more }
    }

    pub(super) fn bytes(&mut self, buffer: &mut Buffer) -> &mut [u8] {
        let part = &self.parts[buffer.id as usize];
        assert!(part.lent > 0, "a buffer of another ring");
        // Also for a buffer of another ring, whose number may be in use here.
        assert!(buffer.at + buffer.len <= part.filled, "a buffer of another ring");
        // SAFETY: the range is in bounds and initialised (zeroed at first). The kernel does not
        // write before the end of what it has filled until the buffer is offered again, and that
        // happens only after all pieces have been returned. `self` is borrowed exclusively, so
        // nobody else accesses these bytes.
        unsafe {
            let all: *mut u8 = (&raw mut (*self.shared.as_ptr()).bytes[buffer.id as usize]).cast();
            std::slice::from_raw_parts_mut(all.add(buffer.at), buffer.len)
        }
    }

    pub(super) fn give_back(&mut self, buffer: Buffer) {
        let part = &mut self.parts[buffer.id as usize];
        assert!(part.lent > 0, "a buffer of another ring");
        part.lent -= 1;
        debug_assert!(!buffer.last || part.done);
        if part.done && part.lent == 0 {
            self.offer(buffer.id);
        }
    }

    /// Offers a whole buffer to the kernel.
    fn offer(&mut self, id: u16) {
        self.parts[id as usize] = Part::default();
        let at = (self.tail % COUNT) as usize;
        // SAFETY: the index is in bounds. The kernel reads only entries before the tail, and this
        // one lies behind it, because no more than `COUNT` are offered. The tail, which is the last
        // field of the first entry, is not changed until the entry is written. Then it is stored
        // with release ordering, as the kernel requires.
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
        // SAFETY: the memory was allocated with this layout, and no operation of the kernel uses it
        // (see `Ring`).
        unsafe {
            std::alloc::dealloc(self.shared.as_ptr().cast(), std::alloc::Layout::new::<Shared>())
        };
    }
}
