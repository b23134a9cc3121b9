//! Async style: the sequential loop with `.await`. For Tokio.

use crate::{Codec, Defer, Flow, Halt, Job, Limits, Service, answer, run_job, run_job_apart};
use std::{future::Future, io, pin::Pin, time::Instant};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    task::spawn_blocking,
    time::{Sleep, sleep, sleep_until},
};

/// Bytes of input space, as long as no request is longer.
const READ: usize = 8 * 1024;

/// Serves one connection to its end. Errors are those of the stream.
pub async fn serve<S, T>(
    mut service: S,
    mut stream: T,
    limits: Limits,
    defer: Defer,
) -> io::Result<()>
where
    S: Service,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut codec = S::Codec::default();
    let mut input = vec![0; READ];
    let mut filled = 0; // a request cut in two: its first part
    let mut began = None; // when that came
    let mut reply = Vec::new();
    let mut patience = Patience::new(limits);
    loop {
        let due = limits.due(Instant::now(), began);
        let read = patience.within(due, stream.read(&mut input[filled..])).await?;
        if read == 0 {
            return Ok(());
        }
        let whole = filled + read;
        let mut at = 0;
        loop {
            let input = &input[at..whole];
            let (consumed, mut halt) = answer(&mut service, &mut codec, input, &mut reply);
            at += consumed;
            if let Halt::Needs(job) = halt {
                if !job.is_short() {
                    // The replies before it do not wait for it.
                    send(&mut stream, &mut reply, limits, &mut patience).await?;
                }
                match do_job(job, &mut reply, defer, &mut stream).await? {
                    Flow::Continue => continue,
                    Flow::Part if at == whole => halt = Halt::Parting,
                    Flow::Close | Flow::Part => halt = Halt::Closing,
                }
            }
            send(&mut stream, &mut reply, limits, &mut patience).await?;
            match halt {
                Halt::Parting => return Ok(()),
                Halt::Hungry => break,
                Halt::Closing => return linger(&mut stream, &mut patience).await,
                Halt::Full | Halt::Needs(_) => {}
            }
        }
        if at > 0 {
            began = None;
            input.copy_within(at..whole, 0);
        }
        filled = whole - at;
        if filled > 0 {
            began.get_or_insert_with(Instant::now);
        }
        fit(&mut input, filled, READ + S::Codec::MAX_FRAME);
    }
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

async fn send<T>(
    stream: &mut T,
    reply: &mut Vec<u8>,
    limits: Limits,
    patience: &mut Patience,
) -> io::Result<()>
where
    T: AsyncWrite + Unpin,
{
    if !reply.is_empty() {
        let due = limits.due(Instant::now(), None);
        patience.within(due, stream.write_all(reply)).await?;
        reply.clear();
    }
    Ok(())
}

/// Does a job, in the blocking pool if it is deferred. One that has not begun is not done if the
/// client goes away.
async fn do_job<J, T>(job: J, reply: &mut Vec<u8>, defer: Defer, stream: &mut T) -> io::Result<Flow>
where
    J: Job,
    T: AsyncWrite + Unpin,
{
    if !defer.takes(&job) {
        return Ok(run_job(job, reply));
    }
    let apart = move || {
        let mut reply = Vec::new();
        let flow = run_job_apart(job, &mut reply);
        (flow, reply)
    };
    let mut apart = spawn_blocking(apart);
    loop {
        tokio::select! {
            biased;
            done = &mut apart => {
                // It fails when the job has panicked, or the runtime ends.
                let (flow, done) = done.map_err(io::Error::other)?;
                reply.extend_from_slice(&done);
                return Ok(flow);
            }
            there = is_there(stream) => {
                if let Err(gone) = there {
                    apart.abort();
                    return Err(gone);
                }
            }
        }
    }
}

/// Waits for a while, and fails if the connection was reset: a write of nothing then fails too. What
/// is left to be read does not matter, nor that the client may have ended its sending direction.
async fn is_there<T: AsyncWrite + Unpin>(stream: &mut T) -> io::Result<()> {
    sleep(Limits::LOOK).await;
    stream.write(&[]).await.map(drop)
}

/// Ends the connection so that the last reply arrives: a close with unread input is a reset.
pub(crate) async fn linger<T>(stream: &mut T, patience: &mut Patience) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    let mut discard = [0; 1024];
    let mut allowed = Limits::LINGER_BYTES;
    let due = Instant::now() + Limits::LINGER;
    while let Ok(read @ 1..) = patience.within(due, stream.read(&mut discard)).await {
        allowed = allowed.saturating_sub(read);
        if allowed == 0 {
            break;
        }
    }
    Ok(())
}

/// One timer for all waits of a connection. It is moved only when it fires too early, so that a
/// wait that ends in time costs no work on the runtime's timer wheel.
pub(crate) struct Patience {
    timer: Pin<Box<Sleep>>,
}

impl Patience {
    pub(crate) fn new(limits: Limits) -> Self {
        Patience { timer: Box::pin(sleep_until((Instant::now() + limits.idle).into())) }
    }

    /// The result of `work`, or `TimedOut` once `due` has passed.
    pub(crate) async fn within<R>(
        &mut self,
        due: Instant,
        work: impl Future<Output = io::Result<R>>,
    ) -> io::Result<R> {
        let due = due.into();
        // It may only fire too early, never too late.
        if due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
        tokio::pin!(work);
        let mut asked_again = false;
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = &mut self.timer => {
                    if tokio::time::Instant::now() < due {
                        self.timer.as_mut().reset(due);
                    } else if asked_again {
                        return Err(io::ErrorKind::TimedOut.into());
                    } else {
                        // After a stall the timer may be noticed before what came in time: the
                        // runtime looks at the sockets once more before this goes on.
                        asked_again = true;
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}
