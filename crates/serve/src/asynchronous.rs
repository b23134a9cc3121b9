//! `async`: a Tokio task per connection, work stealing over a thread per core.

use crate::{
    host::{Host, PAUSE, ServeError},
    open::{Entered, Open},
};
use regatta_service::Program;
use regatta_sys::net;
use std::{
    io,
    net::TcpListener as StdListener,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    sync::Notify,
    time::sleep,
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let listener = host.listen(false)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(host.cores.get())
        .enable_io()
        .enable_time()
        .build()?;
    host.ready(&listener)?;
    let host = host.clone();
    // Spawned, so that accepting runs on a worker too, not on this thread beside them.
    let served = runtime.block_on(runtime.spawn(serve(program, host, StdListener::from(listener))));
    served.expect("accepting does not panic")?;
    Ok(())
}

async fn serve<P: Program>(program: P, host: Host, listener: StdListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let stopped = Arc::new(Notify::new());
    let (stop, notify) = (host.stop.clone(), Arc::clone(&stopped));
    std::thread::spawn(move || stop.wait().map(|()| notify.notify_one()));
    let open = Open::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped.notified() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let entered = Connection(open.enter(stream));
                let (program, limits) = (program.clone(), host.limits);
                tokio::spawn(async move {
                    // A connection's errors are its own end, and nobody else's business.
                    let _ = program.asynchronous(entered, limits).await;
                });
            }
            Err(error) if net::is_transient(&error) => {}
            Err(_) => sleep(PAUSE).await, // out of descriptors: who waits stays queued
        }
        while open.len() >= host.connections && !host.stop.is_set() {
            sleep(PAUSE).await;
        }
    }
    drop(listener);
    tokio::task::spawn_blocking(move || open.drain(&host, std::thread::sleep))
        .await
        .expect("draining does not panic");
    Ok(())
}

/// A stream that a stop can end from outside while its task waits for it.
struct Connection(Entered<TcpStream>);

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &self.0.stream;
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read(into.initialize_unfilled()) {
                Ok(read) => {
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = &self.0.stream;
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(net::finish_writing(self.0.stream.as_ref()))
    }
}
