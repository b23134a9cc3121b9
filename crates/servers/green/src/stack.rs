//! The stacks of coroutines: one reservation per scheduler, divided into equal stacks.
//!
//! The reservation costs only address space (`MAP_NORESERVE`). A page uses memory once a coroutine
//! touches it, so a parked coroutine costs the one or two pages that its frames occupy. Below each
//! stack are guard pages. `MADV_GUARD_INSTALL` (Linux 6.13) creates them without an extra mapping.
//! Before that, `mprotect` splits the reservation, and the kernel's limit on mappings
//! (`vm.max_map_count`, 65,530 by default) allows about 32,000 stacks.
//!
//! The last freed stack is reused first, because it is warm in the cache. It keeps its pages:
//! returning them would cost a system call per connection.

use corosensei::stack::{MIN_STACK_SIZE, Stack, StackPointer};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};
use std::rc::Rc;

/// How the guard pages below each stack are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// `MADV_GUARD_INSTALL` if the kernel supports it, otherwise `mprotect`.
    Lightest,
    /// Always `mprotect`, which costs two mappings per coroutine.
    Mprotect,
}

/// `MADV_GUARD_INSTALL` of `<linux/mman.h>`; neither `rustix` nor `libc` defines it yet.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Guard pages below a stack. Rust touches each page of a large frame in turn; C and assembly do not, so a
/// frame of theirs must not reach over the guard into the next stack.
const GUARD_PAGES: usize = 4;

/// The stacks of a scheduler, used and free.
pub(crate) struct Stacks {
    start: NonNull<c_void>,
    shape: Shape,
    guard: Guard,
    /// Number of stacks used so far. Stacks from this number on have no guard yet.
    used: Cell<usize>,
    free: RefCell<Vec<StackPointer>>,
}

/// The layout of the reservation, in bytes: `count` times a guard followed by a stack.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) start: usize,
    pub(crate) guard: usize,
    pub(crate) stack_size: usize,
    pub(crate) count: usize,
}

impl Shape {
    fn stride(self) -> usize {
        self.guard + self.stack_size
    }

    /// Whether an address lies in a guard.
    pub(crate) fn is_guard(self, address: usize) -> bool {
        let Some(offset) = address.checked_sub(self.start) else { return false };
        offset / self.stride() < self.count && offset % self.stride() < self.guard
    }
}

impl Stacks {
    /// Reserves address space for `count` stacks of at least `stack_size` bytes each, rounded up to
    /// whole pages, plus guard pages.
    pub(crate) fn reserve(stack_size: usize, count: usize, guard: Guard) -> io::Result<Rc<Stacks>> {
        let page = rustix::param::page_size();
        let below = GUARD_PAGES * page;
        let sizes =
            stack_size.max(MIN_STACK_SIZE).checked_next_multiple_of(page).and_then(|size| {
                let length = size.checked_add(below)?.checked_mul(count)?;
                (length > 0).then_some((size, length))
            });
        let (stack_size, length) = sizes.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "green: Config::max_coroutines ({count}) times Config::stack_size \
                     ({stack_size} bytes) must be above zero and fit into the address space"
                ),
            )
        })?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address chosen by the kernel does not affect
        // existing memory.
        let mapping = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), length, access, flags) };
        let start = mapping.ok().and_then(NonNull::new).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!(
                    "green: cannot reserve address space for {count} stacks of {stack_size} bytes \
                     ({mapping:?}): lower Config::max_coroutines or Config::stack_size, or raise \
                     the limit on address space (ulimit -v, vm.overcommit_memory)"
                ),
            )
        })?;
        let shape = Shape { start: start.as_ptr().addr(), guard: below, stack_size, count };
        let (used, free) = (Cell::new(0), RefCell::new(Vec::new()));
        let mut stacks = Stacks { start, shape, guard, used, free };
        // Otherwise one touched page could become a huge page, which covers 30 stacks. A kernel
        // without huge pages refuses the call, which does not matter. SAFETY: this advice on how to
        // back our own mapping does not change its contents.
        let _ = unsafe { rustix::mm::madvise(start.as_ptr(), length, Advice::LinuxNoHugepage) };
        if guard == Guard::Lightest && !stacks.install_guard(0) {
            stacks.guard = Guard::Mprotect;
        }
        Ok(Rc::new(stacks))
    }

    /// Takes an unused stack. It is returned when the [`CoroutineStack`] is dropped.
    pub(crate) fn take(self: &Rc<Self>) -> io::Result<CoroutineStack> {
        let freed = self.free.borrow_mut().pop();
        let base = match freed {
            Some(base) => base,
            None => self.first_use()?,
        };
        Ok(CoroutineStack { stacks: self.clone(), base })
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    fn first_use(&self) -> io::Result<StackPointer> {
        let number = self.used.get();
        if number == self.shape.count {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!("green: all {number} coroutines are alive; raise Config::max_coroutines"),
            ));
        }
        let guarded = match self.guard {
            Guard::Lightest => self.install_guard(number),
            Guard::Mprotect => self.protect_guard(number),
        };
        if !guarded {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!(
                    "green: cannot create guard pages for coroutine {number} ({:?}: {}); without \
                     MADV_GUARD_INSTALL (Linux 6.13) each takes two mappings: \
                     raise vm.max_map_count",
                    self.guard,
                    io::Error::last_os_error(),
                ),
            ));
        }
        self.used.set(number + 1);
        let base = self.shape.start + (number + 1) * self.shape.stride();
        Ok(StackPointer::new(base).expect("a mapping does not end at address 0"))
    }

    fn guard_of(&self, number: usize) -> *mut c_void {
        assert!(number < self.shape.count);
        self.start.as_ptr().wrapping_byte_add(number * self.shape.stride())
    }

    fn install_guard(&self, number: usize) -> bool {
        // SAFETY: the pages lie in our reservation (asserted in `guard_of`), below a stack that
        // has never been used, so nothing refers to them.
        unsafe { libc::madvise(self.guard_of(number), self.shape.guard, MADV_GUARD_INSTALL) == 0 }
    }

    fn protect_guard(&self, number: usize) -> bool {
        // SAFETY: as in `install_guard`.
        unsafe { libc::mprotect(self.guard_of(number), self.shape.guard, libc::PROT_NONE) == 0 }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let length = self.shape.stride() * self.shape.count;
        // SAFETY: the mapping is ours. Every stack in it holds an `Rc` of this value, so none is in
        // use.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), length) };
        debug_assert!(unmapped.is_ok());
    }
}

/// One stack, taken from [`Stacks`].
pub(crate) struct CoroutineStack {
    stacks: Rc<Stacks>,
    base: StackPointer,
}

// SAFETY: base and limit are page-aligned and enclose at least MIN_STACK_SIZE writable bytes above
// a guard page (created in `first_use`). These bytes belong to this value alone: a base is either
// in the free list or in one `CoroutineStack`. The mapping lives as long as `stacks`.
unsafe impl Stack for CoroutineStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        let limit = self.base.get() - self.stacks.shape.stride();
        StackPointer::new(limit).expect("a mapping does not begin at address 0")
    }
}

impl Drop for CoroutineStack {
    fn drop(&mut self) {
        self.stacks.free.borrow_mut().push(self.base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_freed_stack_is_reused_first_and_exhaustion_is_an_error_with_advice() {
        let page = rustix::param::page_size();
        let stacks = Stacks::reserve(2 * page + 1, 2, Guard::Lightest).unwrap();
        let (first, second) = (stacks.take().unwrap(), stacks.take().unwrap());
        assert_eq!(first.base().get() - first.limit().get(), (3 + GUARD_PAGES) * page);
        assert!(second.limit() >= first.base());
        let error = stacks.take().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("Config::max_coroutines"), "{error}");
        let freed = first.base();
        drop(first);
        assert_eq!(stacks.take().unwrap().base(), freed);
    }

    #[test]
    fn the_guard_is_below_each_stack() {
        let shape = Shape { start: 0x10_0000, guard: 4096, stack_size: 65536, count: 2 };
        for (address, guard) in [
            (0x0f_ffff, false),
            (0x10_0000, true),
            (0x10_0fff, true),
            (0x10_1000, false),
            (0x11_1000, true),
            (0x12_2000, false),
        ] {
            assert_eq!(shape.is_guard(address), guard, "{address:#x}");
        }
    }

    #[test]
    fn a_reservation_beyond_the_address_space_is_refused_with_advice() {
        for (size, count) in [(65536, 0), (usize::MAX, 1), (1 << 40, 1 << 40)] {
            let error = Stacks::reserve(size, count, Guard::Lightest).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        let error = Stacks::reserve(1 << 40, 1 << 20, Guard::Lightest).err().unwrap();
        assert!(error.to_string().contains("lower Config::max_coroutines"), "{error}");
    }
}
