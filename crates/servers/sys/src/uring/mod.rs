//! io_uring(7): operations are queued, then submitted in the same call that waits for completions.
//! The ring owns the memory of its operations until they complete.
//!
//! An operation refers to a descriptor by number, so the ring keeps the descriptor open until the
//! operation completes, cancelled or not.

mod buffers;
mod files;
mod kinds;
mod refusal;

pub use buffers::Buffer;
pub use refusal::refused;

use buffers::Buffers;
use files::{Files, Read};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use kinds::{ACCEPT, CANCEL, CLOSE, KIND, OPEN, PAST_END, READ, RECEIVE, SEND, WATCH, name};
use rustix::io::Errno;
use slab::Slab;
use std::{
    ffi::CStr,
    io,
    marker::PhantomData,
    mem::ManuallyDrop,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// Maximum number of queued operations before they must be submitted.
const QUEUED: u32 = 256;
/// Capacity of the completion queue; the kernel keeps further completions until there is room.
const COMPLETED: u32 = 4096;

/// A ring for one thread: only the thread that created it may use it.
pub struct Ring {
    /// Closed before the memory of its operations is freed.
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// Sends in flight.
    sends: ManuallyDrop<Slab<Sending>>,
    /// Reads of files.
    files: ManuallyDrop<Files>,
    /// The sockets of receives in flight, by token, and their number.
    receiving: ManuallyDrop<Vec<Option<Rc<OwnedFd>>>>,
    receives: usize,
    /// The listener of an accept in flight, and the descriptors of watches in flight.
    accepting: ManuallyDrop<Option<Rc<OwnedFd>>>,
    watched: ManuallyDrop<Slab<Watched>>,
    /// A ring belongs to its thread.
    _not_send: PhantomData<Rc<()>>,
}

struct Sending {
    token: u32,
    bytes: Vec<u8>,
    _socket: Rc<OwnedFd>,
}

struct Watched {
    token: u32,
    events: i16,
    _fd: OwnedFd,
}

/// A send in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendKey(u32);

/// The result of an operation. `more`: the operation continues; otherwise it has ended and may be
/// started again.
#[derive(Debug)]
pub enum Completion {
    /// A connection was accepted, or the accept failed.
    Accepted {
        /// The connection, a blocking socket.
        result: io::Result<OwnedFd>,
        /// Whether further completions will follow.
        more: bool,
    },
    /// A receive of a connection has a result.
    Received {
        /// The token of the receive.
        token: u32,
        /// The result.
        result: Received,
        /// Whether further completions will follow.
        more: bool,
    },
    /// A send has ended.
    Sent {
        /// The token of the send.
        token: u32,
        /// How many bytes were sent.
        result: io::Result<usize>,
        /// The buffer that was passed to the send.
        bytes: Vec<u8>,
    },
    /// A file was read, or reading it failed.
    FileRead {
        /// The token of the read.
        token: u32,
        /// Whether the whole file was read.
        result: io::Result<()>,
        /// Its bytes, in a buffer to be returned with [`Ring::give_back_content`].
        content: Vec<u8>,
    },
    /// A watched descriptor is readable, or its connection is gone.
    Readable {
        /// The token of the watch.
        token: u32,
    },
    /// A watched descriptor is writable, or its connection is gone.
    Writable {
        /// The token of the watch.
        token: u32,
    },
}

/// The result of a receive.
#[derive(Debug)]
pub enum Received {
    /// Bytes.
    Bytes(Buffer),
    /// The end of input.
    End,
    /// Nothing: no buffer was free. The receive must be started again after buffers are returned.
    Starved,
    /// Nothing: it was cancelled.
    Cancelled,
    /// An error of the connection.
    Failed(io::Error),
}

impl Ring {
    /// Creates a ring for this thread. Fails if the kernel refuses io_uring (see [`refused`]) or is
    /// older than Linux 6.1.
    pub fn new() -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            // Completions are processed when we wait for them, without interrupting us.
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETED)
            .build(QUEUED)?;
        if !ring.params().is_feature_nodrop() || !ring.params().is_feature_ext_arg() {
            return Err(Errno::INVAL.into());
        }
        ring.submitter().register_files_sparse(files::OPEN_FILES)?;
        let buffers = ManuallyDrop::new(Buffers::new(&ring)?);
        Ok(Ring {
            ring: ManuallyDrop::new(ring),
            buffers,
            sends: ManuallyDrop::default(),
            files: ManuallyDrop::new(Files::new()),
            receiving: ManuallyDrop::default(),
            receives: 0,
            accepting: ManuallyDrop::default(),
            watched: ManuallyDrop::default(),
            _not_send: PhantomData,
        })
    }

    /// Accepts one connection of `listener`, which must be blocking; if `many`, further ones until
    /// cancelled or out of descriptors. Only one accept at a time.
    pub fn accept(&mut self, listener: &Rc<OwnedFd>, many: bool) -> io::Result<()> {
        let fd = types::Fd(listener.as_raw_fd());
        let nobody = std::ptr::null_mut();
        let accept = match many {
            true => opcode::AcceptMulti::new(fd).flags(libc::SOCK_CLOEXEC).build(),
            false => {
                opcode::Accept::new(fd, nobody, nobody.cast()).flags(libc::SOCK_CLOEXEC).build()
            }
        };
        self.queue(accept.user_data(name(ACCEPT, 0)))?;
        *self.accepting = Some(Rc::clone(listener));
        Ok(())
    }

    /// Cancels the accept, which completes it.
    pub fn cancel_accept(&mut self) -> io::Result<()> {
        self.cancel(name(ACCEPT, 0))
    }

    /// Reports once when `fd` is readable.
    pub fn watch(&mut self, fd: impl AsFd, token: u32) -> io::Result<()> {
        self.watch_for(fd, token, libc::POLLIN)
    }

    /// Reports once when `fd` is writable.
    pub fn watch_writable(&mut self, fd: impl AsFd, token: u32) -> io::Result<()> {
        self.watch_for(fd, token, libc::POLLOUT)
    }

    fn watch_for(&mut self, fd: impl AsFd, token: u32, events: i16) -> io::Result<()> {
        let fd = fd.as_fd().try_clone_to_owned()?;
        let watch = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), events as u32).build();
        let key = self.watched.insert(Watched { token, events, _fd: fd }) as u32;
        self.queue(watch.user_data(name(WATCH, key)))
    }

    /// Reads a whole regular file of at most `most` bytes. Only a few files are read at once; the
    /// others wait.
    pub fn read_file(&mut self, path: Arc<CStr>, token: u32, most: usize) {
        self.files.want(token, path, most);
    }

    /// Returns the buffer of a file that was read.
    pub fn give_back_content(&mut self, content: Vec<u8>) {
        self.files.give_back(content);
    }

    fn begin_reads(&mut self) -> io::Result<()> {
        while let Some(linked) = self.files.begin() {
            // SAFETY: the path and the buffer belong to `self.files`. They stay valid until the
            // last operation that refers to them completes, or forever. All four are submitted
            // together.
            while unsafe { self.ring.submission().push_multiple(&linked) }.is_err() {
                self.submit()?;
            }
        }
        Ok(())
    }

    /// Receives from `socket`, which must be blocking, until the end of input, an error, a cancel,
    /// or until no buffer is free; only once unless `many`.
    ///
    /// # Panics
    /// Panics if a receive of `token` is in flight.
    pub fn receive(&mut self, socket: &Rc<OwnedFd>, token: u32, many: bool) -> io::Result<()> {
        if self.receiving.len() <= token as usize {
            self.receiving.resize(token as usize + 1, None);
        }
        let place = &mut self.receiving[token as usize];
        assert!(place.is_none(), "one receive at a time for a token");
        *place = Some(Rc::clone(socket));
        self.receives += 1;
        let fd = types::Fd(socket.as_raw_fd());
        let receive = if many {
            opcode::RecvMulti::new(fd, buffers::GROUP).build()
        } else {
            // As many bytes as the kernel's buffer has room for.
            let once = opcode::Recv::new(fd, std::ptr::null_mut(), 0).buf_group(buffers::GROUP);
            once.build().flags(squeue::Flags::BUFFER_SELECT)
        };
        self.queue(receive.user_data(name(RECEIVE, token)))
    }

    /// Cancels the receive of `token`, which completes it, unless it has already ended.
    pub fn cancel_receive(&mut self, token: u32) -> io::Result<()> {
        self.cancel(name(RECEIVE, token))
    }

    /// Sends as many bytes of `bytes[from..]` as fit, once there is room in the send buffer. A lost
    /// connection is an error, never a signal. `last`: the FIN follows, and the kernel may delay
    /// these bytes to send them with it (MSG_MORE).
    #[expect(clippy::too_many_arguments, reason = "the fields of a submission")]
    pub fn send(
        &mut self,
        socket: &Rc<OwnedFd>,
        token: u32,
        bytes: Vec<u8>,
        from: usize,
        last: bool,
    ) -> io::Result<SendKey> {
        let fd = types::Fd(socket.as_raw_fd());
        let rest = &bytes[from..];
        let len = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let more = if last { libc::MSG_MORE } else { 0 };
        let send =
            opcode::Send::new(fd, rest.as_ptr(), len).flags(libc::MSG_NOSIGNAL | more).build();
        // The bytes stay in place when their `Vec` moves.
        let sending = Sending { token, bytes, _socket: Rc::clone(socket) };
        let key = self.sends.insert(sending) as u32;
        if let Err(error) = self.queue(send.user_data(name(SEND, key))) {
            self.sends.remove(key as usize);
            return Err(error);
        }
        Ok(SendKey(key))
    }

    /// Cancels a send, which completes it, unless it has already completed.
    pub fn cancel_send(&mut self, key: SendKey) -> io::Result<()> {
        self.cancel(name(SEND, key.0))
    }

    fn cancel(&mut self, operation: u64) -> io::Result<()> {
        self.queue(opcode::AsyncCancel::new(operation).build().user_data(name(CANCEL, 0)))
    }

    /// Queues an operation. Its memory, if any, must belong to `self.buffers` or `self.sends`.
    #[inline]
    fn queue(&mut self, operation: squeue::Entry) -> io::Result<()> {
        // SAFETY: a receive writes to `self.buffers`, and a send reads from `self.sends`. Both stay
        // valid until the operation completes, or forever. The other operations use no memory.
        while unsafe { self.ring.submission().push(&operation) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Submits queued operations, without waiting.
    pub fn submit(&self) -> io::Result<()> {
        unless_early(self.ring.submit())
    }

    /// Submits queued operations, and waits until one completes, at most `timeout` (`None`:
    /// forever). May return early without completions.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.begin_reads()?;
        let entered = match timeout {
            None => self.ring.submit_and_wait(1),
            Some(timeout) => {
                let timeout = types::Timespec::from(timeout);
                let args = types::SubmitArgs::new().timespec(&timeout);
                self.ring.submitter().submit_with_args(1, &args)
            }
        };
        unless_early(entered)
    }

    /// Whether some completions did not fit into the queue. The next wait delivers them.
    pub fn has_overflown(&mut self) -> bool {
        self.ring.submission().cq_overflow()
    }

    /// Returns the next completion, if there is one.
    #[inline]
    pub fn completion(&mut self) -> Option<Completion> {
        loop {
            let entry = self.ring.completion().next()?;
            let (kind, key) = (entry.user_data() >> KIND, entry.user_data() as u32);
            let more = cqueue::more(entry.flags());
            return Some(match kind {
                RECEIVE => {
                    if !more {
                        self.receives -= 1;
                        self.receiving[key as usize] = None;
                    }
                    Completion::Received { token: key, result: self.received(&entry), more }
                }
                SEND => {
                    let Sending { token, bytes, .. } = self.sends.remove(key as usize);
                    Completion::Sent { token, result: result(&entry), bytes }
                }
                ACCEPT => {
                    // SAFETY: this accept created the descriptor, and nothing else owns it.
                    let owned = |fd| unsafe { OwnedFd::from_raw_fd(fd as i32) };
                    if !more {
                        *self.accepting = None;
                    }
                    Completion::Accepted { result: result(&entry).map(owned), more }
                }
                WATCH => match self.watched.remove(key as usize) {
                    Watched { token, events: libc::POLLOUT, .. } => Completion::Writable { token },
                    Watched { token, .. } => Completion::Readable { token },
                },
                OPEN | READ | PAST_END | CLOSE => {
                    match self.file_completion(kind, key, entry.result()) {
                        Some(read) => read,
                        None => continue,
                    }
                }
                // The completion of a cancel is ignored: the cancelled operation reports the
                // result.
                _ => continue,
            });
        }
    }

    fn file_completion(&mut self, kind: u64, key: u32, result: i32) -> Option<Completion> {
        let read = self.files.completed(kind, key, result);
        read.map(|Read { token, result, content }| Completion::FileRead { token, result, content })
    }

    #[inline]
    fn received(&mut self, entry: &cqueue::Entry) -> Received {
        let buffer = cqueue::buffer_select(entry.flags()).map(|id| {
            let len = entry.result().max(0) as usize;
            self.buffers.filled(id, len, cqueue::buffer_more(entry.flags()))
        });
        match (result(entry), buffer) {
            (Ok(1..), Some(buffer)) => return Received::Bytes(buffer),
            (_, Some(unused)) => self.buffers.give_back(unused),
            (_, None) => {}
        }
        match result(entry) {
            Ok(_) => Received::End,
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOBUFS) => Received::Starved,
                Some(Errno::CANCELED) => Received::Cancelled,
                _ => Received::Failed(error),
            },
        }
    }

    /// Returns the bytes of a buffer of this ring.
    #[inline]
    pub fn bytes(&mut self, buffer: &mut Buffer) -> &mut [u8] {
        self.buffers.bytes(buffer)
    }

    /// Returns a buffer of this ring to the kernel.
    #[inline]
    pub fn give_back(&mut self, buffer: Buffer) {
        self.buffers.give_back(buffer);
    }
}

/// Evaluates the result of entering the kernel. Returning early is not an error.
fn unless_early(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            // EBUSY: nothing was submitted, because too many completions have not been taken yet.
            // The caller takes them next.
            Some(Errno::TIME | Errno::INTR | Errno::BUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

fn result(entry: &cqueue::Entry) -> io::Result<usize> {
    match entry.result() {
        result @ 0.. => Ok(result as usize),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: none of these is used after this. Memory is freed, and descriptors are closed,
        // only if no operation of the kernel uses them: closing a ring does not wait for
        // operations.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if self.receives == 0 && self.sends.is_empty() && self.files.are_at_rest() {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.sends);
                ManuallyDrop::drop(&mut self.files);
                ManuallyDrop::drop(&mut self.receiving);
            }
            // These operations use no memory, and a late completion does not change what they wait
            // for.
            ManuallyDrop::drop(&mut self.accepting);
            ManuallyDrop::drop(&mut self.watched);
        }
    }
}
