//! `double` and a two-step dialogue, written directly in each style: how do the styles read, and
//! what does the shared machinery cost? Compare [`straight`], [`callback`] and [`asynchronous`]
//! side by side. All use the same parser and the same replies; they differ only in how they wait.
//!
//! The dialogue reads a first name, asks for the last name, greets, and starts over. A straight-line
//! program holds its state in its position; a callback must store it.

mod asynchronous;
pub mod callback;
mod straight;
mod talk;
mod words;

use crate::{
    Limits, Now, Program, SessionFactory,
    style::{asynchronous::Stream as AsyncStream, sequential::Stream},
};
use std::{future::Future, io};

/// Combines the three forms of a program.
macro_rules! by_hand {
    ($(#[$doc:meta])* $program:ident, $form:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $program;

        impl SessionFactory for $program {
            type Session = callback::Machine<callback::$program>;

            fn session(&self, _: Now) -> Self::Session {
                callback::Machine::new()
            }
        }

        impl Program for $program {
            fn sequential<T: Stream>(&self, stream: &mut T, limits: Limits) -> io::Result<()> {
                let mut talk = talk::Talk::new(stream, limits)?;
                straight::$form(&mut talk)?;
                talk.finish()
            }

            fn asynchronous<T: AsyncStream>(
                &self,
                stream: T,
                limits: Limits,
            ) -> impl Future<Output = io::Result<()>> + Send {
                asynchronous::$form(stream, limits)
            }
        }
    };
}

by_hand!(
    /// `double`, without the shared machinery.
    Double,
    double
);
by_hand!(
    /// The dialogue, without the shared machinery.
    Dialogue,
    dialogue
);
