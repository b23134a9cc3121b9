//! Sequential style: read, call, write, repeat. For processes, threads and green threads.

use super::idle_timeout::{check_interval, next_check};
use crate::{Codec, Flow, Halt, Job, Limits, Locals, Now, Service, answer};
use regatta_engine::{Activity, Progress};
use std::{
    cell::RefCell,
    io,
    ops::Range,
    time::{Duration, Instant},
};

/// A blocking byte stream for the sequential style.
pub trait Stream: Locals {
    /// The time.
    fn now(&self) -> Now;

    /// Blocks until input is available, if that is possible without a buffer. Returns at once on
    /// streams whose only way to wait is a read.
    fn wait_readable(&mut self) -> io::Result<()>;

    /// Reads what is available, or blocks. Returns 0 at the end of input, and `TimedOut` or
    /// `WouldBlock` after the read timeout.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Sets the maximum time that [`Stream::wait_readable`] and [`Stream::read`] may block. The
    /// initial value is [`Limits::idle`], or [`read_timeout`], which saves a call.
    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()>;

    /// Writes what fits, or blocks until something does, for at most [`Limits::progress_interval`]. Then it
    /// returns `TimedOut` or `WouldBlock`.
    ///
    /// `last`: [`Stream::shutdown_write`] follows, and the kernel may delay these bytes to send
    /// them together with the FIN. Such a write never blocks: it returns `WouldBlock` if nothing
    /// fits.
    fn write(&mut self, bytes: &[u8], last: bool) -> io::Result<usize>;

    /// Bytes that were written but not acknowledged by the peer.
    fn unacknowledged(&self) -> usize;

    /// Closes the sending direction; reading continues. A server that is stopping may omit this.
    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Returns whether a job runs elsewhere, while this connection holds no memory.
    fn defers<J: Job>(&self, _job: &J) -> bool {
        false
    }

    /// Runs a job, blocking. Fails if the job runs elsewhere and the connection is lost meanwhile.
    fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow>;
}

/// The read timeout of a client that is between requests. It is shorter than the idle timeout,
/// because a silent client may still be receiving.
pub fn read_timeout(limits: Limits) -> Duration {
    check_interval(limits)
}

/// Serves one connection until it closes. Returns errors of the stream.
pub fn serve<S: Service, T: Stream>(service: S, stream: &mut T, limits: Limits) -> io::Result<()> {
    let mut connection = Connection {
        service,
        codec: S::Codec::default(),
        held: Held::default(),
        idle_timer: IdleTimer::new(stream, limits)?,
        limits,
    };
    let served = connection.serve(stream);
    if connection.idle_timer.has_timed_out {
        let mut last = Vec::new();
        connection.service.end(&mut last);
        // What does not fit at once is left out: the client may not read.
        if !last.is_empty() {
            let _ = stream.write(&last, true);
        }
    }
    served
}

struct Connection<S: Service> {
    service: S,
    codec: S::Codec,
    held: Held,
    idle_timer: IdleTimer,
    limits: Limits,
}

enum Step<J> {
    Continue {
        answered: bool,
    },
    /// Waits for this job. Input after its request is held.
    Waits(J),
    Closing,
    /// The client asked to close the connection, and no input remains.
    ClosingByClient {
        at_once: bool,
    },
    Ended,
}

impl<S: Service> Connection<S> {
    /// Serves it until it closes.
    fn serve<T: Stream>(&mut self, stream: &mut T) -> io::Result<()> {
        let mut reads = true; // false after a deferred job: held input is answered first
        loop {
            if reads {
                self.idle_timer.before(stream, |stream| stream.wait_readable())?;
            }
            let mut scratch = Scratch::take();
            let step = self.step(stream, &mut scratch, reads);
            scratch.give_back();
            reads = true;
            match step? {
                Step::Ended => return Ok(()),
                Step::Closing => return linger(stream),
                Step::ClosingByClient { at_once } => return close_by_client(stream, at_once),
                Step::Continue { answered } => self.wait_within(stream, answered)?,
                Step::Waits(job) => {
                    self.idle_timer.after(stream, true, false)?;
                    let mut reply = Vec::new();
                    let flow = stream.run(job, &mut reply)?;
                    let last = flow != Flow::Continue;
                    let at_once = send(stream, &mut reply, last, self.limits)?;
                    match flow {
                        Flow::Continue => reads = self.held.is_empty(),
                        Flow::ClosedByClient if self.held.is_empty() => {
                            return close_by_client(stream, at_once);
                        }
                        Flow::Close | Flow::ClosedByClient => return linger(stream),
                    }
                }
            }
        }
    }

    /// Updates the timeout after a read.
    fn wait_within<T: Stream>(&mut self, stream: &mut T, answered: bool) -> io::Result<()> {
        let partial = !self.held.is_empty();
        self.idle_timer.after_within(stream, answered, partial, self.service.inside())
    }

    /// Reads once, unless held input must be answered first, and answers all available requests up
    /// to one whose job is deferred.
    fn step<T: Stream>(
        &mut self,
        stream: &mut T,
        scratch: &mut Scratch,
        reads: bool,
    ) -> io::Result<Step<S::Job>> {
        let Scratch { input: space, reply } = scratch;
        let Connection { service, codec, held, idle_timer, limits } = self;
        let was_held = !held.is_empty();
        let mut filled = held.filled;
        if was_held {
            held.fit(S::Codec::MAX_FRAME);
        }
        let input = if was_held { &mut held.bytes } else { &mut *space };
        if reads {
            let read = idle_timer.before(stream, |stream| stream.read(&mut input[filled..]))?;
            if read == 0 {
                service.end(reply);
                send(stream, reply, false, *limits)?;
                return Ok(Step::Ended);
            }
            filled += read;
        }
        let mut at = 0;
        let mut waits = None;
        loop {
            let rest = &input[at..filled];
            let mut local = stream.take::<S::Local>();
            let (consumed, mut halt) =
                answer(service, codec, &mut local, stream.now(), rest, reply);
            stream.give_back(local);
            at += consumed;
            if let Halt::Needs(job) = halt {
                let deferred = stream.defers(&job);
                if deferred || !job.is_short() {
                    send(stream, reply, false, *limits)?; // earlier replies do not wait for the job
                }
                if deferred {
                    waits = Some(job);
                    break;
                }
                match stream.run(job, reply)? {
                    Flow::Continue => continue,
                    Flow::ClosedByClient if at == filled => halt = Halt::ClosingByClient,
                    Flow::Close | Flow::ClosedByClient => halt = Halt::Closing,
                }
            }
            let last = matches!(halt, Halt::Closing | Halt::ClosingByClient);
            let at_once = send(stream, reply, last, *limits)?;
            match halt {
                Halt::ClosingByClient => return Ok(Step::ClosingByClient { at_once }),
                Halt::Closing => return Ok(Step::Closing),
                Halt::NeedsInput => break,
                Halt::Full | Halt::Needs(_) => {}
            }
        }
        if was_held {
            held.consume(at, filled);
        } else {
            held.hold(&space[at..filled]);
        }
        Ok(match waits {
            Some(job) => Step::Waits(job),
            None => Step::Continue { answered: at > 0 },
        })
    }
}

/// Input not yet answered: an incomplete request, or what follows a deferred one. Later parts are
/// read directly behind it, so each byte is copied about once.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    filled: usize,
    /// Total bytes moved to the front.
    #[cfg(test)]
    moved: usize,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.filled == 0
    }

    fn hold(&mut self, rest: &[u8]) {
        self.bytes.extend_from_slice(rest);
        self.filled = rest.len();
    }

    /// Makes room to read behind the held input if little is left: for twice as much as is held, so
    /// that a long request is rarely moved.
    fn fit(&mut self, max_frame: usize) {
        if self.bytes.len() - self.filled < READ.min(self.filled).max(1024) {
            let more = (2 * self.filled).clamp(4 * 1024, READ + max_frame);
            self.bytes.resize(self.filled + more, 0);
        }
    }

    /// Drops consumed bytes, and frees all memory if none remain. If none were consumed, nothing is
    /// moved, because a request may arrive byte by byte.
    fn consume(&mut self, consumed: usize, filled: usize) {
        if consumed == filled {
            *self = Held::default();
            return;
        }
        self.filled = filled - consumed;
        if consumed > 0 {
            self.move_to_front(consumed..filled);
        }
    }

    fn move_to_front(&mut self, left: Range<usize>) {
        #[cfg(test)]
        {
            self.moved += left.len();
        }
        self.bytes.copy_within(left, 0);
    }
}

/// Limits a client's silence, on a stream whose reads have a timeout.
pub(crate) struct IdleTimer {
    limits: Limits,
    /// When the current incomplete request started.
    inside: Option<Instant>,
    /// Of a client that is silent, from its first check on.
    silence: Option<Activity>,
    /// Whether the client was silent, or inside a request, for too long.
    has_timed_out: bool,
}

impl IdleTimer {
    pub(crate) fn new<T: Stream>(stream: &mut T, limits: Limits) -> io::Result<Self> {
        stream.set_read_timeout(read_timeout(limits))?;
        Ok(IdleTimer { limits, inside: None, silence: None, has_timed_out: false })
    }

    /// Waits. Between requests, a client that acknowledges what was sent is not silent.
    pub(crate) fn before<T: Stream, R>(
        &mut self,
        stream: &mut T,
        mut wait: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            match wait(stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    let (now, owed) = (stream.now().instant, stream.unacknowledged());
                    let due = match self.inside {
                        None => next_check(&mut self.silence, now, owed, self.limits),
                        Some(_) => None,
                    };
                    self.has_timed_out = due.is_none();
                    stream.set_read_timeout(due.ok_or(io::ErrorKind::TimedOut)? - now)?;
                }
                result => {
                    if self.silence.take().is_some() {
                        stream.set_read_timeout(read_timeout(self.limits))?;
                    }
                    return result;
                }
            }
        }
    }

    /// Updates the timeout after a read. `answered`: requests were answered; `partial`: an
    /// incomplete one is held.
    pub(crate) fn after<T: Stream>(
        &mut self,
        stream: &mut T,
        answered: bool,
        partial: bool,
    ) -> io::Result<()> {
        self.after_within(stream, answered, partial, None)
    }

    /// Like [`IdleTimer::after`]. `since`: when the oldest other request started that is incomplete.
    fn after_within<T: Stream>(
        &mut self,
        stream: &mut T,
        answered: bool,
        partial: bool,
        since: Option<Instant>,
    ) -> io::Result<()> {
        let ends = answered || !partial;
        let was_inside = ends && self.inside.take().is_some();
        if !partial && since.is_none() {
            return match was_inside {
                true => stream.set_read_timeout(read_timeout(self.limits)),
                false => Ok(()),
            };
        }
        let now = stream.now().instant;
        let own = self.inside.or(partial.then_some(now));
        self.inside = own.into_iter().chain(since).min();
        let due = self.limits.due(now, self.inside);
        if due <= now {
            self.has_timed_out = true;
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(due - now)
    }
}

/// Sends all of `reply`. Returns whether all of it fit without waiting. Fails after the idle
/// timeout if the client takes nothing.
pub fn send<T: Stream>(
    stream: &mut T,
    reply: &mut Vec<u8>,
    last: bool,
    limits: Limits,
) -> io::Result<bool> {
    send_while(stream, reply, last, limits, |_, _| Ok(()))
}

/// Like [`send`], but also fails if `check` does. `check` is called with the time after each write that did
/// not write everything, so at least every [`Limits::progress_interval`].
pub(super) fn send_while<T: Stream>(
    stream: &mut T,
    reply: &mut Vec<u8>,
    last: bool,
    limits: Limits,
    mut check: impl FnMut(&T, Instant) -> io::Result<()>,
) -> io::Result<bool> {
    let mut sent = 0;
    let mut at_once = true;
    let mut progress = None;
    while sent < reply.len() {
        match stream.write(&reply[sent..], last && at_once) {
            Ok(written) => sent += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
        if sent < reply.len() {
            at_once = false;
            let now = stream.now().instant;
            check(stream, now)?;
            let progress = progress.get_or_insert_with(|| Progress::new(now));
            progress.sample(now, sent as u64, stream.unacknowledged());
            if progress.is_stalled(now, limits.idle) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    reply.clear();
    Ok(at_once)
}

/// Closes the connection at the client's request. If the last replies had to wait for room, the
/// client may have sent more since.
pub fn close_by_client<T: Stream>(stream: &mut T, at_once: bool) -> io::Result<()> {
    if at_once { stream.shutdown_write() } else { linger(stream) }
}

/// Repeats a call that a signal interrupted.
fn retry<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Returns whether this error means that a call timed out.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// Closes the connection so that the last reply arrives: closing with unread input would cause a
/// reset.
pub fn linger<T: Stream>(stream: &mut T) -> io::Result<()> {
    stream.shutdown_write()?;
    let mut discard = [0; 1024];
    let mut allowed = Limits::LINGER_BYTES;
    let due = stream.now().instant + Limits::LINGER;
    loop {
        // The timeout shrinks with each read, so a client cannot prolong the wait by sending.
        let left = due.saturating_duration_since(stream.now().instant);
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(left)?;
        match retry(|| stream.read(&mut discard)) {
            Ok(read) if (1..allowed).contains(&read) => allowed -= read,
            _ => return Ok(()),
        }
    }
}

/// Bytes per read.
const READ: usize = 16 * 1024;

/// Input and output buffers of a busy connection. They belong to the OS thread, so that an idle
/// green thread holds none.
struct Scratch {
    input: Vec<u8>,
    reply: Vec<u8>,
}

thread_local! {
    static SPARE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

impl Scratch {
    /// Maximum number kept per thread. One is in use at a time, except for writers that block.
    const KEPT: usize = 4;

    fn take() -> Self {
        SPARE
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| Scratch { input: vec![0; READ], reply: Vec::new() })
    }

    fn give_back(mut self) {
        self.reply.clear();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < Self::KEPT {
                spare.push(self);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a long request.
    const LONG: usize = 100_000;

    /// Holds a request that arrives in pieces of this size. Returns how many of its bytes were
    /// copied after they were read.
    fn copied(piece: usize) -> usize {
        let request: Vec<u8> = (0..LONG).map(|at| (at % 251) as u8).collect();
        let mut held = Held::default();
        let (first, rest) = request.split_at(piece);
        held.hold(first);
        let mut copied = 0;
        for piece in rest.chunks(piece) {
            let (before, filled) = (held.bytes.as_ptr(), held.filled);
            held.fit(LONG);
            if held.bytes.as_ptr() != before {
                copied += filled;
            }
            held.bytes[filled..][..piece.len()].copy_from_slice(piece);
            held.consume(0, filled + piece.len());
        }
        assert!(held.bytes[..held.filled] == request[..]);
        assert!(held.bytes.len() <= 4 * LONG, "{} bytes of memory", held.bytes.len());
        copied + held.moved
    }

    #[test]
    fn a_long_request_in_small_pieces_is_copied_at_most_twice() {
        for piece in [1, 2, 1023, 1500, READ] {
            let copied = copied(piece);
            assert!(copied <= 2 * LONG, "in pieces of {piece} bytes: {copied} bytes copied");
        }
    }

    #[test]
    fn consumed_bytes_are_dropped_and_unused_memory_is_freed() {
        let mut held = Held::default();
        held.hold(b"abc");
        held.consume(2, 3);
        assert_eq!((&held.bytes[..held.filled], held.is_empty()), (&b"c"[..], false));
        held.consume(1, 1);
        assert_eq!((held.is_empty(), held.bytes.capacity()), (true, 0));
    }
}
