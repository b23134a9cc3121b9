//! A program in all three styles, ready for an I/O model to run.

use crate::{
    Limits, Never, Now, Service, Session, SessionFactory,
    style::{Connection, asynchronous, sequential},
};
use std::{future::Future, io};

/// A program that can serve connections in each of the three styles. A model uses the style it is
/// built for. [`SessionFactory::session`] is the callback form.
///
/// Its connections are independent of each other, so a model may run it in one process or in many.
pub trait Program:
    SessionFactory<Session: Session<Push = Never>> + Clone + Send + Sync + 'static
{
    /// Serves a connection until it closes, blocking.
    fn sequential<T: sequential::Stream>(&self, stream: &mut T, limits: Limits) -> io::Result<()>;

    /// Serves a connection until it closes, as a future.
    fn asynchronous<T: asynchronous::Stream>(
        &self,
        stream: T,
        limits: Limits,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// A [`Service`] as a [`Program`], through the three shared styles.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceProgram<S>(pub S);

impl<S: Service> SessionFactory for ServiceProgram<S> {
    type Session = Connection<S>;

    fn session(&self, _: Now) -> Connection<S> {
        Connection::new(self.0.clone())
    }
}

impl<S: Service> Program for ServiceProgram<S> {
    fn sequential<T: sequential::Stream>(&self, stream: &mut T, limits: Limits) -> io::Result<()> {
        sequential::serve(self.0.clone(), stream, limits)
    }

    fn asynchronous<T: asynchronous::Stream>(
        &self,
        stream: T,
        limits: Limits,
    ) -> impl Future<Output = io::Result<()>> + Send {
        asynchronous::serve(self.0.clone(), stream, limits)
    }
}
