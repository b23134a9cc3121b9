//! `async`: a Tokio task per connection, work stealing over a thread per core.

use crate::host::{Host, PAUSE, ServeError};
use regatta_service::Program;
use regatta_sys::net;
use std::{
    future::Future,
    io,
    net::TcpListener as StdListener,
    pin::Pin,
    task::{Context, Poll},
    thread,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    time::{sleep, timeout},
};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::TaskTracker,
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let listener = host.listen(false)?;
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(host.cores.get()).enable_io().enable_time();
    if let Some(threads) = host.offload {
        runtime.max_blocking_threads(threads.get());
    }
    let runtime = runtime.build()?;
    host.ready(&listener)?;
    let host = host.clone();
    // Spawned, so that accepting runs on a worker too, not on this thread beside them.
    let served = runtime.block_on(runtime.spawn(serve(program, host, listener.into())));
    // What is not done when the grace is over is cut, and a job under way not waited for.
    runtime.shutdown_background();
    Ok(served.expect("accepting does not panic")?)
}

async fn serve<P: Program>(program: P, host: Host, listener: StdListener) -> io::Result<()> {
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
                let mut stream = Connection { stream, stopped: wait_for(&stopped) };
                let (program, limits, stop) = (program.clone(), host.limits, host.stop.clone());
                let defer = host.defer();
                connections.spawn(async move {
                    // A connection's errors are its own end, and nobody else's business.
                    let _ = program.asynchronous(&mut stream, limits, defer).await;
                    while !stop.may_close(&stream.stream) {
                        sleep(PAUSE / 4).await;
                    }
                });
            }
            Err(error) if net::is_transient(&error) => {}
            Err(_) => sleep(PAUSE).await, // out of descriptors: who waits stays queued
        }
        while connections.len() >= host.connections && !stopped.is_cancelled() {
            sleep(PAUSE).await;
        }
    }
    drop(listener);
    connections.close();
    // What is not done by then is cut.
    let _ = timeout(host.grace, connections.wait()).await;
    Ok(())
}

/// A stream whose input ends when the server stops: what has arrived is still read.
struct Connection {
    stream: TcpStream,
    stopped: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

fn wait_for(stop: &CancellationToken) -> Option<Pin<Box<WaitForCancellationFutureOwned>>> {
    Some(Box::pin(stop.clone().cancelled_owned()))
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if let (Poll::Pending, Some(stopped)) = (&read, &mut self.stopped)
            && stopped.as_mut().poll(cx).is_ready()
        {
            self.stopped = None;
            net::finish_reading(&self.stream)?;
            return Pin::new(&mut self.stream).poll_read(cx, into);
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
