//! Async style: the sequential loop with `.await`.

use super::idle_timeout::{check_interval, next_check};
use crate::{Codec, Flow, Halt, Job, Limits, Locals, Now, Service, answer};
use regatta_engine::Progress;
use std::{future::Future, io, time::Instant};

/// A byte stream for the async style.
pub trait Stream: Locals + Send {
    /// The time.
    fn now(&self) -> Now;

    /// Reads what is available, or waits. Returns 0 at the end of input, and `TimedOut` after
    /// `due`.
    fn read(
        &mut self,
        into: &mut [u8],
        due: Instant,
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Writes what fits, or waits until something does. Returns `TimedOut` after `due`.
    ///
    /// `last`: [`Stream::shutdown_write`] follows, and the kernel may delay these bytes to send
    /// them together with the FIN. Such a write never waits: it returns `WouldBlock` if nothing
    /// fits.
    fn write(
        &mut self,
        bytes: &[u8],
        last: bool,
        due: Instant,
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Bytes that were written but not acknowledged by the peer.
    fn unacknowledged(&self) -> usize;

    /// Closes the sending direction; reading continues. A server that is stopping may omit this.
    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Runs a job. Fails if the job runs elsewhere and the connection is lost meanwhile.
    fn run<J: Job>(
        &mut self,
        job: J,
        reply: &mut Vec<u8>,
    ) -> impl Future<Output = io::Result<Flow>> + Send;
}

/// Size of the input buffer unless a request is longer, in bytes.
const READ: usize = 8 * 1024;

/// Serves one connection until it closes. Returns errors of the stream.
pub async fn serve<S, T>(mut service: S, mut stream: T, limits: Limits) -> io::Result<()>
where
    S: Service,
    T: Stream,
{
    let mut codec = S::Codec::default();
    let mut input = vec![0; READ];
    let mut filled = 0; // bytes of an incomplete request
    let mut inside: Option<Instant> = None; // when that request started
    let mut reply = Vec::new();
    loop {
        let waits_since = inside.into_iter().chain(service.inside()).min();
        let read = match read(&mut stream, &mut input[filled..], waits_since, limits).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                service.end(&mut reply);
                end_late(&mut stream, &reply, limits).await;
                return Err(error);
            }
            read => read?,
        };
        if read == 0 {
            service.end(&mut reply);
            send(&mut stream, &reply, false, limits).await?;
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
                    // The earlier replies do not wait for the job.
                    send(&mut stream, &reply, false, limits).await?;
                    reply.clear();
                }
                match stream.run(job, &mut reply).await? {
                    Flow::Continue => continue,
                    Flow::ClosedByClient if at == whole => halt = Halt::ClosingByClient,
                    Flow::Close | Flow::ClosedByClient => halt = Halt::Closing,
                }
            }
            let last = matches!(halt, Halt::Closing | Halt::ClosingByClient);
            let at_once = send(&mut stream, &reply, last, limits).await?;
            reply.clear();
            match halt {
                Halt::ClosingByClient => return close_by_client(&mut stream, at_once).await,
                Halt::NeedsInput => break,
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

/// Writes the last output for a client that has timed out. What does not fit at once is left out: the client
/// may not read.
#[cold]
async fn end_late<T: Stream>(stream: &mut T, bytes: &[u8], limits: Limits) {
    if !bytes.is_empty() {
        let due = stream.now().instant + limits.progress_interval();
        let _ = stream.write(bytes, true, due).await;
    }
}

/// Reads from a client. `inside`: when its incomplete request started. Between requests, a client
/// is not silent while it acknowledges what was sent.
pub(crate) async fn read<T: Stream>(
    stream: &mut T,
    into: &mut [u8],
    inside: Option<Instant>,
    limits: Limits,
) -> io::Result<usize> {
    let mut silence = None;
    let now = stream.now().instant;
    let mut due = match inside {
        None => now + check_interval(limits),
        Some(_) => limits.due(now, inside),
    };
    loop {
        match stream.read(into, due).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && inside.is_none() => {
                let now = stream.now().instant;
                match next_check(&mut silence, now, stream.unacknowledged(), limits) {
                    Some(check) => due = check,
                    None => return Err(error),
                }
            }
            result => return result,
        }
    }
}

/// Sends all of `bytes`. Returns whether all of it fit without waiting. Fails after the idle
/// timeout if the client takes nothing.
pub(crate) async fn send<T: Stream>(
    stream: &mut T,
    bytes: &[u8],
    last: bool,
    limits: Limits,
) -> io::Result<bool> {
    send_while(stream, bytes, last, limits, |_, _| Ok(())).await
}

/// Like [`send`], but also fails if `check` does. `check` is called with the time after each write that did
/// not write everything, so at least every [`Limits::progress_interval`].
pub(super) async fn send_while<T: Stream>(
    stream: &mut T,
    bytes: &[u8],
    last: bool,
    limits: Limits,
    mut check: impl FnMut(&T, Instant) -> io::Result<()>,
) -> io::Result<bool> {
    let mut sent = 0;
    let mut at_once = true;
    let mut progress = None;
    while sent < bytes.len() {
        let due = stream.now().instant + limits.progress_interval();
        match stream.write(&bytes[sent..], last && at_once, due).await {
            Ok(written) => sent += written,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        if sent < bytes.len() {
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
    Ok(at_once)
}

/// Closes the connection at the client's request. If the last replies had to wait for room, the
/// client may have sent more since.
pub(crate) async fn close_by_client<T: Stream>(stream: &mut T, at_once: bool) -> io::Result<()> {
    if at_once { stream.shutdown_write() } else { linger(stream).await }
}

/// Enlarges a full input buffer, up to `most` bytes, and shrinks it once all input is answered: an
/// idle connection holds [`READ`] bytes.
fn fit(input: &mut Vec<u8>, filled: usize, most: usize) {
    if filled == input.len() {
        input.resize((2 * filled).min(most), 0);
    } else if filled == 0 && input.len() > READ {
        *input = vec![0; READ];
    }
}

/// Closes the connection so that the last reply arrives: closing with unread input would cause a
/// reset.
pub(crate) async fn linger<T: Stream>(stream: &mut T) -> io::Result<()> {
    stream.shutdown_write()?;
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
