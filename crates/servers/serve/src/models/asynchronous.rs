//! `async`: a Tokio task per connection, work stealing over a thread per core.

use crate::{
    between::membership::{Bell, Membership, PushSessionFactory, Registry},
    blocking::shutdown_write,
    clock,
    host::{Host, PAUSE, ServeError, Stop},
    local,
    work::job,
};
use regatta_engine::{Post, Push, SessionFactory};
use regatta_service::{
    Flow, Job, Limits, Locals, Now, Program, Session,
    style::{
        asynchronous::Stream,
        member::{self, AsyncMember, PushEndpoint, Wake},
    },
};
use regatta_sys::{net, queue};
use std::{
    future::{Future, poll_fn},
    io,
    net::TcpListener as StdListener,
    os::fd::AsFd,
    pin::Pin,
    sync::Arc,
    task::Poll,
    thread,
    time::Instant,
};
use tokio::{
    io::{AsyncRead, Interest, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    sync::Notify,
    task::spawn_blocking,
    time::{Sleep, sleep, sleep_until, timeout},
};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::TaskTracker,
};

/// How connections are served.
trait Serve: Clone + Send + Sync + 'static {
    /// The membership through which it receives pushes, if any.
    type Member: Send;

    fn member(&self) -> Self::Member;

    /// Serves a connection until it closes.
    fn serve(
        &self,
        connection: &mut Connection<Self::Member>,
        limits: Limits,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

#[derive(Clone)]
struct Alone<P>(P);

impl<P: Program> Serve for Alone<P> {
    type Member = ();

    fn member(&self) {}

    fn serve(
        &self,
        connection: &mut Connection<()>,
        limits: Limits,
    ) -> impl Future<Output = io::Result<()>> + Send {
        self.0.asynchronous(connection, limits)
    }
}

#[derive(Clone)]
struct Together<F: SessionFactory> {
    start: F,
    registry: Arc<Registry<Arc<Notify>, PushOf<F>>>,
}

type PushOf<F> = <<F as SessionFactory>::Session as Session>::Push;

/// How a member receives pushes.
struct InRoom<P> {
    bell: Arc<Notify>,
    membership: Membership<Arc<Notify>, P>,
}

impl<F: PushSessionFactory> Serve for Together<F> {
    type Member = InRoom<PushOf<F>>;

    fn member(&self) -> Self::Member {
        let bell = Arc::<Notify>::default();
        let membership = Membership::new(Arc::clone(&self.registry), Arc::clone(&bell));
        InRoom { bell, membership }
    }

    fn serve(
        &self,
        connection: &mut Connection<Self::Member>,
        limits: Limits,
    ) -> impl Future<Output = io::Result<()>> + Send {
        member::serve(self.start.session(clock::now()), connection, limits)
    }
}

impl Bell for Arc<Notify> {
    fn ring(&self) {
        self.notify_one();
    }
}

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    run_each(Alone(program), host)
}

/// Runs sessions that post to each other.
pub(crate) fn run_members<F: PushSessionFactory>(start: F, host: &Host) -> Result<(), ServeError> {
    let bounds = start.clone();
    let registry = Registry::new(move |room| bounds.bounds(room));
    run_each(Together { registry, start }, host)
}

fn run_each<S: Serve>(serve: S, host: &Host) -> Result<(), ServeError> {
    let listener = host.listen()?;
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(host.cores.get()).enable_io().enable_time();
    if let Some(threads) = host.offload {
        runtime.max_blocking_threads(threads.get());
    }
    let runtime = runtime.build()?;
    host.ready(&listener)?;
    let host = host.clone();
    // Spawned, so that accepting also runs on a worker thread, not on this additional thread.
    let served = runtime.block_on(runtime.spawn(accept(serve, host, listener.into())));
    // Connections that remain after the grace period are cut. Running jobs are not awaited.
    runtime.shutdown_background();
    Ok(served.expect("accepting does not panic")?)
}

async fn accept<S: Serve>(serve: S, host: Host, listener: StdListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let stopped = CancellationToken::new();
    let (stop, cancel) = (host.stop.clone(), stopped.clone());
    thread::spawn(move || stop.wait().map(|()| cancel.cancel()));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (serve, limits, stop) = (serve.clone(), host.limits, host.stop.clone());
                let mut stream = Connection {
                    stream,
                    stopped: wait_for(&stopped),
                    stop: stop.clone(),
                    alarm: Alarm::new(limits),
                    offloads: host.offload.is_some(),
                    member: serve.member(),
                };
                connections.spawn(async move {
                    // An error closes only its own connection.
                    let _ = serve.serve(&mut stream, limits).await;
                    while !stop.may_close(&stream.stream) {
                        sleep(PAUSE / 4).await;
                    }
                });
            }
            Err(error) if net::is_transient(&error) => {}
            Err(_) => sleep(PAUSE).await, // out of descriptors: clients wait in the accept queue
        }
        while connections.len() >= host.connections && !stopped.is_cancelled() {
            sleep(PAUSE).await;
        }
    }
    drop(listener);
    connections.close();
    // Connections that remain after the grace period are cut.
    let _ = timeout(host.grace, connections.wait()).await;
    Ok(())
}

/// A connection whose input is shut down when the server stops. Input that has arrived is still
/// read.
struct Connection<M> {
    stream: TcpStream,
    stopped: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    stop: Stop,
    alarm: Alarm,
    /// Whether long jobs run in the runtime's blocking pool.
    offloads: bool,
    member: M,
}

fn wait_for(stop: &CancellationToken) -> Option<Pin<Box<WaitForCancellationFutureOwned>>> {
    Some(Box::pin(stop.clone().cancelled_owned()))
}

impl<M> Locals for &mut Connection<M> {
    fn take<L: Default + Send + 'static>(&self) -> Box<L> {
        local::take()
    }

    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>) {
        local::give_back(local);
    }
}

impl<M: Send> Stream for &mut Connection<M> {
    fn now(&self) -> Now {
        clock::now()
    }

    async fn read(&mut self, into: &mut [u8], due: Instant) -> io::Result<usize> {
        let Connection { stream, stopped, alarm, .. } = &mut **self;
        let mut into = ReadBuf::new(into);
        let read = poll_fn(|cx| {
            let read = Pin::new(&mut *stream).poll_read(cx, &mut into);
            if let (Poll::Pending, Some(stop)) = (&read, &mut *stopped)
                && stop.as_mut().poll(cx).is_ready()
            {
                *stopped = None;
                net::shutdown_read(&*stream)?;
                return Pin::new(&mut *stream).poll_read(cx, &mut into);
            }
            read
        });
        alarm.within(due, read).await?;
        Ok(into.filled().len())
    }

    async fn write(&mut self, bytes: &[u8], last: bool, due: Instant) -> io::Result<usize> {
        let Connection { stream, alarm, .. } = &mut **self;
        if last {
            return net::write_last(stream.as_fd(), bytes);
        }
        // The socket almost always has room, so the runtime is used only when it has not.
        match net::write(stream.as_fd(), bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let write = || net::write(stream.as_fd(), bytes);
                alarm.within(due, stream.async_io(Interest::WRITABLE, write)).await
            }
            written => written,
        }
    }

    fn unacknowledged(&self) -> usize {
        queue::unacknowledged(&self.stream).unwrap_or(0)
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        shutdown_write(&self.stream, &self.stop)
    }

    /// A deferred job that has not started is dropped when the client disconnects.
    async fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        if !self.offloads || job.is_short() {
            return Ok(job::run(job, reply));
        }
        let work = move || {
            let mut reply = Vec::new();
            let flow = job::run_at_low_priority(job, &mut reply);
            (flow, reply)
        };
        let mut offloaded = spawn_blocking(work);
        loop {
            // The timeout is the interval of the checks whether the client is gone.
            match timeout(Limits::LIVENESS_INTERVAL, &mut offloaded).await {
                Ok(done) => {
                    // It fails if the job has panicked, or the runtime ends.
                    let (flow, done) = done.map_err(io::Error::other)?;
                    reply.extend_from_slice(&done);
                    return Ok(flow);
                }
                Err(_) if net::is_gone(&self.stream) => {
                    offloaded.abort();
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                Err(_) => {}
            }
        }
    }
}

impl<P: Push> PushEndpoint<P> for &mut Connection<InRoom<P>> {
    fn post(&mut self, post: Post<P>) -> u32 {
        self.member.membership.post(post)
    }

    fn next(&mut self) -> Option<P> {
        self.member.membership.next()
    }

    fn is_overrun(&self) -> bool {
        self.member.membership.is_overrun()
    }

    fn is_gone(&self) -> bool {
        net::is_gone(&self.stream)
    }
}

impl<P: Push + Sync> AsyncMember<P> for &mut Connection<InRoom<P>> {
    async fn wait(&mut self, reads: bool, until: Instant) -> io::Result<Wake<P>> {
        let Connection { stream, stopped, member, .. } = &mut **self;
        let pushed = async {
            // The bell may have rung for pushes that were received meanwhile.
            loop {
                if let Some(wake) = member.membership.rung() {
                    break wake;
                }
                member.bell.notified().await;
            }
        };
        let stopping = poll_fn(|cx| match stopped {
            Some(stop) => stop.as_mut().poll(cx),
            None => Poll::Pending,
        });
        tokio::select! {
            readable = stream.readable(), if reads => readable.map(|()| Wake::Readable),
            () = stopping, if reads => {
                *stopped = None;
                net::shutdown_read(&*stream).map(|()| Wake::Readable)
            }
            wake = pushed => Ok(wake),
            () = sleep_until(until.into()) => Ok(match reads && net::is_readable(&*stream) {
                // After a stall the timer may be noticed before input that arrived in time.
                true => Wake::Readable,
                false => Wake::Deadline,
            }),
        }
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(into)
    }
}

/// One timer for all reads and writes of a connection. It is usually reset only when it fires too
/// early, so one that ends in time costs no work on the runtime's timer wheel.
struct Alarm {
    timer: Pin<Box<Sleep>>,
}

impl Alarm {
    fn new(limits: Limits) -> Self {
        Alarm { timer: Box::pin(sleep_until((Instant::now() + limits.idle).into())) }
    }

    /// Returns the result of `work`, or `TimedOut` once `due` has passed.
    async fn within<R>(
        &mut self,
        due: Instant,
        work: impl Future<Output = io::Result<R>>,
    ) -> io::Result<R> {
        let due = due.into();
        // The timer may fire too early, but never too late.
        if due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
        tokio::pin!(work);
        let mut polled_again = false;
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = &mut self.timer => {
                    if tokio::time::Instant::now() < due {
                        self.timer.as_mut().reset(due);
                    } else if polled_again {
                        return Err(io::ErrorKind::TimedOut.into());
                    } else {
                        // After a stall the timer may be noticed before input that arrived in time:
                        // the runtime polls the sockets once more before this continues.
                        polled_again = true;
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}
