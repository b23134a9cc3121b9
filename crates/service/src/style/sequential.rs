//! Sequential style: read, call, write, repeat. For processes, threads and green threads.

use crate::{Codec, Defer, Flow, Halt, Job, Limits, Service, answer, run_job};
use std::{
    cell::RefCell,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// A blocking byte stream as the sequential style needs it.
pub trait Stream: Read + Write {
    /// Blocks until a read would not, where that can be done without a buffer at hand. On streams
    /// whose read is the only way to wait, returns at once.
    fn wait_readable(&mut self) -> io::Result<()>;

    /// Longest time that a read may block; `TimedOut` or `WouldBlock` is its error.
    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()>;

    /// Longest time that a write may block without progress.
    fn set_write_timeout(&mut self, limit: Duration) -> io::Result<()>;

    /// Ends the sending direction; reading goes on.
    fn finish_writing(&mut self) -> io::Result<()>;

    /// Which jobs are left to [`Stream::do_deferred`].
    fn defer(&self) -> Defer {
        Defer::Nothing
    }

    /// Does one of those, blocking. It fails when the connection is gone meanwhile.
    fn do_deferred<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        Ok(run_job(job, reply))
    }
}

/// A stream of the standard library: its read is the only way to wait. Shared, so that another
/// thread can end it.
impl Stream for &TcpStream {
    fn wait_readable(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        TcpStream::set_read_timeout(self, Some(limit))
    }

    fn set_write_timeout(&mut self, limit: Duration) -> io::Result<()> {
        TcpStream::set_write_timeout(self, Some(limit))
    }

    fn finish_writing(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Serves one connection to its end. Errors are those of the stream.
pub fn serve<S: Service, T: Stream>(
    mut service: S,
    stream: &mut T,
    limits: Limits,
) -> io::Result<()> {
    let mut codec = S::Codec::default();
    let mut held = Vec::new(); // a request cut in two: its first part
    let mut began = None; // when that came
    let mut reads = true; // after a deferred job what is held is answered first
    stream.set_read_timeout(limits.idle)?;
    stream.set_write_timeout(limits.idle)?;
    loop {
        if reads {
            stream.wait_readable()?;
        }
        let mut scratch = Scratch::take();
        let step = step(&mut service, &mut codec, stream, &mut scratch, &mut held, reads);
        scratch.give_back();
        reads = true;
        match step? {
            Step::Ended => return Ok(()),
            Step::Closing => return linger(stream),
            Step::Continue { answered } => {
                if answered && began.take().is_some() {
                    stream.set_read_timeout(limits.idle)?;
                }
            }
            Step::Waits(job) => {
                if began.take().is_some() {
                    stream.set_read_timeout(limits.idle)?;
                }
                let mut reply = Vec::new();
                let flow = stream.do_deferred(job, &mut reply)?;
                send(stream, &mut reply)?;
                match flow {
                    Flow::Continue => reads = held.is_empty(),
                    Flow::Part if held.is_empty() => return Ok(()),
                    Flow::Close | Flow::Part => return linger(stream),
                }
                continue;
            }
        }
        if !held.is_empty() {
            let now = Instant::now();
            let due = limits.due(now, Some(*began.get_or_insert(now)));
            if due <= now {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(due - now)?;
        }
    }
}

enum Step<J> {
    Continue {
        answered: bool,
    },
    /// For this job. What came behind its request is held.
    Waits(J),
    Closing,
    Ended,
}

/// One read, unless what is held is to be answered first, and the answers to all that is there then.
fn step<S: Service, T: Stream>(
    service: &mut S,
    codec: &mut S::Codec,
    stream: &mut T,
    scratch: &mut Scratch,
    held: &mut Vec<u8>,
    reads: bool,
) -> io::Result<Step<S::Job>> {
    let before = held.len();
    scratch.fit(before, S::Codec::MAX_FRAME);
    let Scratch { input, reply } = scratch;
    input[..before].copy_from_slice(held);
    let mut filled = before;
    if reads {
        filled += retry(|| stream.read(&mut input[before..]))?;
        if filled == before {
            return Ok(Step::Ended);
        }
    }
    let whole = &input[..filled];
    let mut rest = whole;
    loop {
        let (consumed, mut halt) = answer(service, codec, rest, reply);
        rest = &rest[consumed..];
        if let Halt::Needs(job) = halt {
            let deferred = stream.defer().takes(&job);
            if deferred || !job.is_short() {
                send(stream, reply)?; // the replies before it do not wait for it
            }
            if deferred {
                held.clear();
                held.extend_from_slice(rest);
                return Ok(Step::Waits(job));
            }
            match run_job(job, reply) {
                Flow::Continue => continue,
                Flow::Part if rest.is_empty() => halt = Halt::Parting,
                Flow::Close | Flow::Part => halt = Halt::Closing,
            }
        }
        send(stream, reply)?;
        match halt {
            Halt::Parting => return Ok(Step::Ended),
            Halt::Hungry => break,
            Halt::Closing => return Ok(Step::Closing),
            Halt::Full | Halt::Needs(_) => {}
        }
    }
    held.clear();
    held.extend_from_slice(rest);
    Ok(Step::Continue { answered: rest.len() < whole.len() })
}

fn send<T: Stream>(stream: &mut T, reply: &mut Vec<u8>) -> io::Result<()> {
    if !reply.is_empty() {
        stream.write_all(reply)?;
        reply.clear();
    }
    Ok(())
}

/// Ends the connection so that the last reply arrives: a close with unread input is a reset.
pub(crate) fn linger<T: Stream>(stream: &mut T) -> io::Result<()> {
    stream.finish_writing()?;
    let mut discard = [0; 1024];
    let mut allowed = Limits::LINGER_BYTES;
    let due = Instant::now() + Limits::LINGER;
    loop {
        // A timeout of its own for each read: a client that sends on now and then gets no longer.
        let left = due.saturating_duration_since(Instant::now());
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

/// Repeats a call that a signal interrupted.
fn retry<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => return result,
        }
    }
}

/// Bytes of one read, as long as no request is longer.
const READ: usize = 16 * 1024;

/// Input and output space of a connection while it is busy. It belongs to the OS thread, not to
/// the connection, so that an idle green thread holds none.
struct Scratch {
    input: Vec<u8>,
    reply: Vec<u8>,
}

thread_local! {
    static SPARE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

impl Scratch {
    /// How many a thread keeps. One is in use at a time, but for writers that block.
    const KEPT: usize = 4;

    fn take() -> Self {
        SPARE
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| Scratch { input: vec![0; READ], reply: Vec::new() })
    }

    /// Makes room for a read behind so many bytes that are held. Few requests are so long that it
    /// has to grow: a thread whose connection never sends one has never more than it needs.
    fn fit(&mut self, held: usize, max_frame: usize) {
        if self.input.len() - held.min(self.input.len()) < READ / 2 {
            self.input.resize(READ + max_frame, 0);
        }
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
