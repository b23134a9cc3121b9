//! Async style: the sequential loop with `.await`.

use super::silence::{Silence, look};
use crate::{Codec, Flow, Halt, Job, Limits, Locals, Now, Service, answer};
use regatta_engine::Progress;
use std::{future::Future, io, time::Instant};

/// A byte stream as the async style needs it.
pub trait Stream: Locals + Send {
    /// The time.
    fn now(&self) -> Now;

    /// Reads what is there, or waits. 0 is the end of input. `TimedOut` is its error after `due`.
    fn read(
        &mut self,
        into: &mut [u8],
        due: Instant,
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Writes what fits, or waits until something does. `TimedOut` is its error after `due`.
    ///
    /// `last`: [`Stream::finish_writing`] follows, and the kernel may hold these bytes back to send
    /// them with the end. Such a write never waits: `WouldBlock` is its error if nothing fits.
    fn write(
        &mut self,
        bytes: &[u8],
        last: bool,
        due: Instant,
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Bytes that were written and that the peer has not acknowledged.
    fn unacknowledged(&self) -> usize;

    /// Ends the sending direction; reading goes on.
    fn finish_writing(&mut self) -> io::Result<()>;

    /// Does a job. Fails when the connection is gone meanwhile.
    fn run<J: Job>(
        &mut self,
        job: J,
        reply: &mut Vec<u8>,
    ) -> impl Future<Output = io::Result<Flow>> + Send;
}

/// Bytes of input space, as long as no request is longer.
const READ: usize = 8 * 1024;

/// Serves one connection to its end. Errors are those of the stream.
pub async fn serve<S, T>(mut service: S, mut stream: T, limits: Limits) -> io::Result<()>
where
    S: Service,
    T: Stream,
{
    let mut codec = S::Codec::default();
    let mut input = vec![0; READ];
    let mut filled = 0; // a request cut in two: its first part
    let mut inside: Option<Instant> = None; // since when
    let mut reply = Vec::new();
    loop {
        let read = read(&mut stream, &mut input[filled..], inside, limits).await?;
        if read == 0 {
            return Ok(());
        }
        let whole = filled + read;
        let mut at = 0;
        loop {
            let rest = &input[at..whole];
            let mut local = stream.take::<S::Local>();
            let (consumed, mut halt) =
                answer(&mut service, &mut codec, &mut local, stream.now(), rest, &mut reply);
            stream.give_back(local);
            at += consumed;
            if let Halt::Needs(job) = halt {
                if !job.is_short() && !reply.is_empty() {
                    // The replies before it do not wait for it.
                    send(&mut stream, &reply, false, limits).await?;
                    reply.clear();
                }
                match stream.run(job, &mut reply).await? {
                    Flow::Continue => continue,
                    Flow::Part if at == whole => halt = Halt::Parting,
                    Flow::Close | Flow::Part => halt = Halt::Closing,
                }
            }
            let last = matches!(halt, Halt::Closing | Halt::Parting);
            let at_once = send(&mut stream, &reply, last, limits).await?;
            reply.clear();
            match halt {
                Halt::Parting => return part(&mut stream, at_once).await,
                Halt::Hungry => break,
                Halt::Closing => return linger(&mut stream).await,
                Halt::Full | Halt::Needs(_) => {}
            }
        }
        if at > 0 {
            inside = None;
            input.copy_within(at..whole, 0);
        }
        filled = whole - at;
        if filled > 0 {
            inside.get_or_insert(stream.now().instant);
        }
        fit(&mut input, filled, READ + S::Codec::MAX_FRAME);
    }
}

/// Reads from a client that is inside a request since `inside`. One that is inside none, and takes
/// what was sent before, is not silent.
pub(crate) async fn read<T: Stream>(
    stream: &mut T,
    into: &mut [u8],
    inside: Option<Instant>,
    limits: Limits,
) -> io::Result<usize> {
    let mut silence = Silence::default();
    let now = stream.now().instant;
    let mut due = match inside {
        None => now + look(limits),
        Some(_) => limits.due(now, inside),
    };
    loop {
        match stream.read(into, due).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && inside.is_none() => {
                let now = stream.now().instant;
                match silence.look(now, 0, stream.unacknowledged(), limits) {
                    Some(more) => due = now + more,
                    None => return Err(error),
                }
            }
            result => return result,
        }
    }
}

/// Sends all of `bytes`. Returns whether there was room for all of it at once. Fails once the client
/// has taken nothing of it for the idle timeout.
pub(crate) async fn send<T: Stream>(
    stream: &mut T,
    bytes: &[u8],
    last: bool,
    limits: Limits,
) -> io::Result<bool> {
    send_while(stream, bytes, last, limits, |_| Ok(())).await
}

/// As [`send`]. Fails also when `check` does, which is called at least after each
/// [`Limits::look`].
pub(super) async fn send_while<T: Stream>(
    stream: &mut T,
    bytes: &[u8],
    last: bool,
    limits: Limits,
    check: impl Fn(&T) -> io::Result<()>,
) -> io::Result<bool> {
    let mut sent = 0;
    let mut at_once = true;
    let mut progress = None;
    while sent < bytes.len() {
        check(stream)?;
        let due = stream.now().instant + limits.look();
        match stream.write(&bytes[sent..], last && at_once, due).await {
            Ok(written) => sent += written,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        if sent < bytes.len() {
            at_once = false;
            let now = stream.now().instant;
            let progress = progress.get_or_insert_with(|| Progress::new(now));
            progress.look(now, sent as u64, stream.unacknowledged());
            if progress.is_stalled(now, limits.idle) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    Ok(at_once)
}

/// Closes the connection by the client's wish. If its last replies had to wait for room, it may have
/// sent something since.
pub(crate) async fn part<T: Stream>(stream: &mut T, at_once: bool) -> io::Result<()> {
    if at_once { stream.finish_writing() } else { linger(stream).await }
}

/// Makes room behind a request that fills its space, up to `most` bytes, and gives it back once all
/// is answered: a connection that waits holds [`READ`].
fn fit(input: &mut Vec<u8>, filled: usize, most: usize) {
    if filled == input.len() {
        input.resize((2 * filled).min(most), 0);
    } else if filled == 0 && input.len() > READ {
        *input = vec![0; READ];
    }
}

/// Closes the connection so that the last reply arrives: a close with unread input is a reset.
pub(crate) async fn linger<T: Stream>(stream: &mut T) -> io::Result<()> {
    stream.finish_writing()?;
    let mut discard = [0; 1024];
    let mut allowed = Limits::LINGER_BYTES;
    let due = stream.now().instant + Limits::LINGER;
    while let Ok(read @ 1..) = stream.read(&mut discard, due).await {
        allowed = allowed.saturating_sub(read);
        if allowed == 0 {
            break;
        }
    }
    Ok(())
}
