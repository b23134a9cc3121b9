//! The results of the steps of the reader.

use super::{event::Event, request::Summary};

/// An event whose fields are not borrowed yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice<'a> {
    Request { stream: u32, summary: Summary, is_repeated: bool, ends: bool },
    Trailers(u32),
    Other(Event<'a>),
}

/// The result of a step of the reader.
pub(super) enum Step<'a> {
    /// More bytes must arrive.
    Wait,
    /// The next step can follow.
    Continue,
    Report(Notice<'a>),
}
