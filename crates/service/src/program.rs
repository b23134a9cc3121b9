//! A program in all three styles: what an I/O model is handed to run.

use crate::{
    Defer, Limits, Service,
    style::{Connection, Session, Stream, asynchronous, sequential},
};
use std::{future::Future, io, time::Instant};
use tokio::io::{AsyncRead, AsyncWrite};

/// Something that can serve connections in each of the three styles. A model uses the one that it
/// is made for.
pub trait Program: Clone + Send + Sync + 'static {
    /// Its callback form.
    type Session: Session;

    /// A new connection for callback models, which do the deferred jobs.
    fn session(&self, limits: Limits, now: Instant, defer: Defer) -> Self::Session;

    /// Serves a connection to its end, blocking.
    fn sequential<T: Stream>(&self, stream: &mut T, limits: Limits) -> io::Result<()>;

    /// Serves a connection to its end, as a future. Deferred jobs are done in the blocking pool of
    /// the runtime.
    fn asynchronous<T>(
        &self,
        stream: T,
        limits: Limits,
        defer: Defer,
    ) -> impl Future<Output = io::Result<()>> + Send
    where
        T: AsyncRead + AsyncWrite + Unpin + Send;
}

/// A [`Service`] as a [`Program`], through the three shared styles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared<S>(pub S);

impl<S: Service> Program for Shared<S> {
    type Session = Connection<S>;

    fn session(&self, limits: Limits, now: Instant, defer: Defer) -> Connection<S> {
        Connection::new(self.0.clone(), limits, now, defer)
    }

    fn sequential<T: Stream>(&self, stream: &mut T, limits: Limits) -> io::Result<()> {
        sequential::serve(self.0.clone(), stream, limits)
    }

    fn asynchronous<T>(
        &self,
        stream: T,
        limits: Limits,
        defer: Defer,
    ) -> impl Future<Output = io::Result<()>> + Send
    where
        T: AsyncRead + AsyncWrite + Unpin + Send,
    {
        asynchronous::serve(self.0.clone(), stream, limits, defer)
    }
}
