//! Whole files, read by the ring: open, read, read past the expected end, close. The four
//! operations are linked, so the kernel runs one after the other. The files are in the ring's own
//! table (direct descriptors), so the process's descriptor table is not used.
//!
//! Only regular files are read. Nothing waits for other files such as a FIFO: opening and reading
//! fail instead (O_NONBLOCK, RWF_NOWAIT). If a read would wait or does not support RWF_NOWAIT, or if
//! the length differs from that of the last file, stat(2) decides whether the file is refused,
//! accepted or read again.

use super::kinds::{CLOSE, OPEN, PAST_END, READ, name};
use io_uring::{opcode, squeue, types};
use rustix::{
    fs::{FileType, stat},
    io::Errno,
};
use std::{collections::VecDeque, ffi::CStr, io, sync::Arc};

/// Maximum number of files open at once; further reads wait. It is small, so that the content is
/// still in the CPU's caches when it is used.
pub(super) const OPEN_FILES: u32 = 8;

/// Bytes requested at first; later, as many as the last file had.
const FIRST: usize = 64 * 1024;

/// Maximum number of retries per file, e.g. while its length keeps changing.
const TRIES: u32 = 20;

/// A requested read.
pub(super) struct Wanted {
    pub(super) token: u32,
    pub(super) path: Arc<CStr>,
    /// Maximum size of the file in bytes.
    pub(super) most: usize,
    /// Its expected length, if known from an earlier try.
    expected: Option<usize>,
    /// The read waits: it is a regular file whose bytes are not in memory.
    patient: bool,
    tries: u32,
}

/// The result of a read.
pub(super) struct Read {
    pub(super) token: u32,
    pub(super) result: io::Result<()>,
    pub(super) content: Vec<u8>,
}

/// The reads of a ring.
pub(super) struct Files {
    /// The reads in flight, by their index in the table of files.
    places: [Place; OPEN_FILES as usize],
    waiting: VecDeque<Wanted>,
    /// The size of the last regular file. The next read requests as many bytes.
    expected: Option<usize>,
    /// Whether reads use RWF_NOWAIT. Some filesystems do not support it (e.g. tmpfs). Without it,
    /// each file is checked with stat(2) first.
    nowait: bool,
    /// Buffers that were returned.
    spare: Vec<Vec<u8>>,
}

#[derive(Default)]
enum Place {
    #[default]
    Free,
    /// The kernel writes to `content`, which has `asked` + 1 bytes.
    Reading { wanted: Wanted, content: Vec<u8>, asked: usize, got: Option<i32> },
    /// Everything is read.
    Closing,
}

impl Files {
    pub(super) fn new() -> Self {
        let places = std::array::from_fn(|_| Place::Free);
        Files { places, waiting: VecDeque::new(), expected: None, nowait: true, spare: Vec::new() }
    }

    /// Whether the kernel writes to no buffer of these reads.
    pub(super) fn are_at_rest(&self) -> bool {
        !self.places.iter().any(|place| matches!(place, Place::Reading { .. }))
    }

    pub(super) fn want(&mut self, token: u32, path: Arc<CStr>, most: usize) {
        let wanted = Wanted { token, path, most, expected: None, patient: false, tries: 0 };
        self.waiting.push_back(wanted);
    }

    /// Returns a buffer for later reads.
    pub(super) fn give_back(&mut self, content: Vec<u8>) {
        if self.spare.len() < OPEN_FILES as usize {
            self.spare.push(content);
        }
    }

    /// Returns the operations of the next waiting read, if it can start. They must be submitted
    /// together. The path and buffer that they point to stay valid until [`Files::completed`]
    /// reports the end of the read.
    pub(super) fn begin(&mut self) -> Option<[squeue::Entry; 4]> {
        let free = self.places.iter().position(|place| matches!(place, Place::Free))?;
        let wanted = self.waiting.pop_front()?;
        let (asked, key) = (wanted.expected.or(self.expected).unwrap_or(FIRST), free as u32);
        let mut content = self.spare.pop().unwrap_or_default();
        // Every byte is initialised, whatever the kernel writes. If the buffer contained a file of
        // this length before, this only writes the last byte.
        content.resize(asked + 1, 0);
        let may_wait = wanted.patient || !self.nowait && check_regular(&wanted.path).is_ok();
        let read_flags = if may_wait { 0 } else { libc::RWF_NOWAIT };
        // O_CLOEXEC is rejected for direct descriptors, which no other program inherits.
        let nonblock = if wanted.patient { 0 } else { libc::O_NONBLOCK };
        let bytes = content.as_mut_ptr();
        let file = types::Fixed(key);
        let here = types::DestinationSlot::try_from_slot_target(key).expect("a small number");
        let open = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), wanted.path.as_ptr())
            .file_index(Some(here))
            .flags(libc::O_RDONLY | libc::O_NOCTTY | nonblock)
            .build()
            // Only a failure is reported. Then the other operations report nothing.
            .flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS);
        let read = opcode::Read::new(file, bytes, asked as u32)
            .offset(0)
            .rw_flags(read_flags)
            .build()
            // The next two always follow. It is reported only if it fails or is short.
            .flags(squeue::Flags::IO_HARDLINK | squeue::Flags::SKIP_SUCCESS);
        let past_end = opcode::Read::new(file, bytes.wrapping_add(asked), 1)
            .offset(asked as u64)
            .rw_flags(read_flags)
            .build()
            .flags(squeue::Flags::IO_HARDLINK);
        let close = opcode::Close::new(file).build();
        self.places[free] = Place::Reading { wanted, content, asked, got: None };
        Some([
            open.user_data(name(OPEN, key)),
            read.user_data(name(READ, key)),
            past_end.user_data(name(PAST_END, key)),
            close.user_data(name(CLOSE, key)),
        ])
    }

    /// Handles a completed operation of the read at `key`. Returns the read if it is finished.
    pub(super) fn completed(&mut self, kind: u64, key: u32, result: i32) -> Option<Read> {
        let place = &mut self.places[key as usize];
        match kind {
            CLOSE => *place = Place::Free,
            READ => {
                if let Place::Reading { got, .. } = place {
                    *got = Some(result);
                }
            }
            OPEN | PAST_END => {
                // After a failed open, no other operation follows.
                let next = if kind == OPEN { Place::Free } else { Place::Closing };
                if let Place::Reading { wanted, content, asked, got } =
                    std::mem::replace(place, next)
                {
                    // Nothing was read if the open failed.
                    let got = if kind == OPEN { Some(result) } else { got };
                    return self.came(wanted, content, asked, got, result);
                }
            }
            _ => {}
        }
        None
    }

    /// Evaluates a read of `got` bytes, and of `past_end` bytes after them; a negative number is an
    /// error. `got` is `None` if all requested bytes were read.
    #[expect(clippy::too_many_arguments, reason = "a read and its two results")]
    fn came(
        &mut self,
        mut wanted: Wanted,
        mut content: Vec<u8>,
        asked: usize,
        got: Option<i32>,
        past_end: i32,
    ) -> Option<Read> {
        let got = got.unwrap_or(asked as i32);
        let worst = got.min(past_end);
        let would_wait = worst == -Errno::AGAIN.raw_os_error();
        let not_known = worst == -Errno::OPNOTSUPP.raw_os_error() && !wanted.patient;
        if worst < 0 && !would_wait && !not_known {
            return Some(wanted.failed(io::Error::from_raw_os_error(-worst), content));
        }
        let whole = worst >= 0 && got as usize == asked && past_end == 0;
        if (!whole || self.expected != Some(asked))
            && let Err(error) = check_regular(&wanted.path)
        {
            return Some(wanted.failed(error, content));
        }
        if worst < 0 {
            wanted.patient |= would_wait;
            self.nowait &= !not_known;
            return self.again(wanted, content);
        }
        let got = got as usize;
        if got == asked && (asked > wanted.most || !whole && asked == wanted.most) {
            return Some(wanted.failed(Errno::FBIG.into(), content));
        }
        if whole {
            content.truncate(got);
            self.expected = Some(asked);
            return Some(Read { token: wanted.token, result: Ok(()), content });
        }
        let larger = wanted.most.min(asked * 2 + FIRST);
        wanted.expected = Some(if got < asked { got } else { larger });
        self.again(wanted, content)
    }

    /// Reads the file again, because its length differs from the expected one, because the read must
    /// wait, or because RWF_NOWAIT is not supported.
    fn again(&mut self, mut wanted: Wanted, content: Vec<u8>) -> Option<Read> {
        wanted.tries += 1;
        if wanted.tries > TRIES {
            return Some(wanted.failed(Errno::AGAIN.into(), content));
        }
        self.give_back(content);
        self.waiting.push_front(wanted);
        None
    }
}

impl Wanted {
    fn failed(self, error: io::Error, content: Vec<u8>) -> Read {
        Read { token: self.token, result: Err(error), content }
    }
}

/// Fails if `path` does not name a regular file.
fn check_regular(path: &CStr) -> io::Result<()> {
    match FileType::from_raw_mode(stat(path)?.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}
