//! io_uring(7): operations are queued and handed to the kernel with the wait for completions, in
//! one call. The ring owns the memory of its operations until they are completed.
//!
//! An operation goes by descriptor number, so the ring holds its descriptor open until it is completed,
//! cancelled or not.

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

/// Operations queued before they must be handed over.
const QUEUED: u32 = 256;
/// Completions that fit; the kernel keeps more than that until there is room.
const COMPLETED: u32 = 4096;

/// A ring for one thread: only the thread that made it may use it.
pub struct Ring {
    /// Closed before the memory that it works on goes.
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// Sends that are not completed.
    sends: ManuallyDrop<Slab<Sending>>,
    /// Reads of files.
    files: ManuallyDrop<Files>,
    /// The sockets of receives that are not completed, by token, and how many these are.
    receiving: ManuallyDrop<Vec<Option<Rc<OwnedFd>>>>,
    receives: usize,
    /// The listener, and what is watched, of operations that are not completed.
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

/// A send under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendKey(u32);

/// What came of an operation. `more`: it goes on; otherwise it is over and may be started again.
#[derive(Debug)]
pub enum Completion {
    /// A connection, or why there is none.
    Accepted {
        /// The connection, a blocking socket.
        result: io::Result<OwnedFd>,
        /// Whether others will follow.
        more: bool,
    },
    /// Bytes of a connection, or their end.
    Received {
        /// That of the receive.
        token: u32,
        /// What came.
        result: Received,
        /// Whether others will follow.
        more: bool,
    },
    /// A send is over.
    Sent {
        /// That of the send.
        token: u32,
        /// How many bytes were sent.
        result: io::Result<usize>,
        /// The memory that was lent.
        bytes: Vec<u8>,
    },
    /// A file is read, or why not.
    FileRead {
        /// That of the read.
        token: u32,
        /// Whether it is there as a whole.
        result: io::Result<()>,
        /// Its bytes, in memory to be given back.
        content: Vec<u8>,
    },
    /// The descriptor that was watched is readable.
    Readable {
        /// That of the watch.
        token: u32,
    },
    /// The descriptor that was watched is writable, or gone.
    Writable {
        /// That of the watch.
        token: u32,
    },
}

/// What a receive came to.
#[derive(Debug)]
pub enum Received {
    /// Bytes.
    Bytes(Buffer),
    /// The end of input.
    End,
    /// Nothing: no buffer was left. To be started again after others were given back.
    Starved,
    /// Nothing: it was cancelled.
    Cancelled,
    /// An error of the connection.
    Failed(io::Error),
}

impl Ring {
    /// A ring for this thread. Fails where the kernel refuses io_uring (see [`refused`]), or is
    /// older than 6.1.
    pub fn new() -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            // Completions are worked out when we wait for them, not by interrupting us.
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

    /// Accepts a connection of `listener`, which must be blocking; or `many`, until cancelled or
    /// out of descriptors. One at a time.
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

    /// Completes the accept.
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

    /// Reads a whole regular file, of at most so many bytes. Few are read at once, the others wait.
    pub fn read_file(&mut self, path: Arc<CStr>, token: u32, most: usize) {
        self.files.want(token, path, most);
    }

    /// Gives back the memory that a file was read into.
    pub fn give_back_content(&mut self, content: Vec<u8>) {
        self.files.give_back(content);
    }

    fn begin_reads(&mut self) -> io::Result<()> {
        while let Some(linked) = self.files.begin() {
            // SAFETY: the path and the memory are those of `self.files`, and stay until the last of
            // the operations that name them is completed, or for ever. All four go as one.
            while unsafe { self.ring.submission().push_multiple(&linked) }.is_err() {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// Receives from `socket`, which must be blocking, until its end, an error, a cancel, or until
    /// no buffer is left.
    ///
    /// # Panics
    /// If a receive of `token` is under way.
    pub fn receive(&mut self, socket: &Rc<OwnedFd>, token: u32) -> io::Result<()> {
        if self.receiving.len() <= token as usize {
            self.receiving.resize(token as usize + 1, None);
        }
        let place = &mut self.receiving[token as usize];
        assert!(place.is_none(), "one receive at a time for a token");
        *place = Some(Rc::clone(socket));
        self.receives += 1;
        let fd = types::Fd(socket.as_raw_fd());
        let receive = opcode::RecvMulti::new(fd, buffers::GROUP).build();
        self.queue(receive.user_data(name(RECEIVE, token)))
    }

    /// Completes the receive of `token`, if it has not ended by itself.
    pub fn cancel_receive(&mut self, token: u32) -> io::Result<()> {
        self.cancel(name(RECEIVE, token))
    }

    /// Sends what there is room for of `bytes[from..]`, once there is room. A connection that is
    /// gone is an error, never a signal. `last`: the end follows, and the kernel may hold these bytes
    /// back to send them with it (MSG_MORE).
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
        // The bytes do not move with their `Vec`.
        let sending = Sending { token, bytes, _socket: Rc::clone(socket) };
        let key = self.sends.insert(sending) as u32;
        if let Err(error) = self.queue(send.user_data(name(SEND, key))) {
            self.sends.remove(key as usize);
            return Err(error);
        }
        Ok(SendKey(key))
    }

    /// Completes a send, if it is not completed by itself.
    pub fn cancel_send(&mut self, key: SendKey) -> io::Result<()> {
        self.cancel(name(SEND, key.0))
    }

    fn cancel(&mut self, whom: u64) -> io::Result<()> {
        self.queue(opcode::AsyncCancel::new(whom).build().user_data(name(CANCEL, 0)))
    }

    /// Queues an operation whose memory, if it has any, is that of `self.sends`.
    #[inline]
    fn queue(&mut self, operation: squeue::Entry) -> io::Result<()> {
        // SAFETY: a receive writes to `self.buffers`, a send reads from `self.sends`; both stay
        // until the operation is completed, or for ever. The others have no memory.
        while unsafe { self.ring.submission().push(&operation) }.is_err() {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Hands over what is queued, without waiting.
    pub fn hand_over(&self) -> io::Result<()> {
        unless_early(self.ring.submit())
    }

    /// Hands over what is queued, and waits up to `timeout` (`None`: for ever) until something is
    /// completed. May return early with nothing.
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

    /// Whether completions are left that did not fit. They fit at the next wait.
    pub fn has_overflown(&mut self) -> bool {
        self.ring.submission().cq_overflow()
    }

    /// The next completion, if there is one.
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
                    // SAFETY: the descriptor was made by this accept, for us alone.
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
                OPEN | READ | PAST_END | CLOSE => match self.of_file(kind, key, entry.result()) {
                    Some(read) => read,
                    None => continue,
                },
                // A cancel tells nothing: what it cancelled does.
                _ => continue,
            });
        }
    }

    fn of_file(&mut self, kind: u64, key: u32, result: i32) -> Option<Completion> {
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

    /// The bytes of a buffer of this ring.
    #[inline]
    pub fn bytes(&mut self, buffer: &mut Buffer) -> &mut [u8] {
        self.buffers.bytes(buffer)
    }

    /// Gives a buffer of this ring back to the kernel.
    #[inline]
    pub fn give_back(&mut self, buffer: Buffer) {
        self.buffers.give_back(buffer);
    }
}

/// What came of entering the kernel, which may come back before it has done all.
fn unless_early(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            // EBUSY: nothing was queued, and too many completions are not taken yet; they are next.
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
        // SAFETY: none of these is used after this. Memory is freed, and descriptors are closed, only
        // if the kernel has no operation on them: closing a ring does not wait for those.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if self.receives == 0 && self.sends.is_empty() && self.files.are_at_rest() {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.sends);
                ManuallyDrop::drop(&mut self.files);
                ManuallyDrop::drop(&mut self.receiving);
            }
            // These have no memory, and what they wait for is not changed by a late completion.
            ManuallyDrop::drop(&mut self.accepting);
            ManuallyDrop::drop(&mut self.watched);
        }
    }
}
