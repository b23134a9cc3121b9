//! `double` and a two-step dialogue, written by hand in each style: how do they read, and does
//! the shared machinery cost anything? Lay [`straight`], [`callback`] and [`asynchronous`] side
//! by side. All use the same parser and the same replies; only the waiting is written out.
//!
//! The dialogue asks for a first name, then for a last name, then greets, and begins again:
//! where a straight-line program is simply further down, a callback has to remember.

mod asynchronous;
pub mod callback;
mod straight;
mod talk;
mod words;

use crate::{
    Limits, Now, Program, Start,
    style::{asynchronous::Stream as AsyncStream, sequential::Stream},
};
use std::{future::Future, io};

/// Ties the three forms of a program together.
macro_rules! by_hand {
    ($(#[$doc:meta])* $program:ident, $form:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $program;

        impl Start for $program {
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
    /// `double`, by hand.
    Double,
    double
);
by_hand!(
    /// The dialogue, by hand.
    Dialogue,
    dialogue
);
