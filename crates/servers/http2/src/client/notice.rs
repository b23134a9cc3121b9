//! The results of the steps of the reader.

use super::{
    event::{Event, Stream},
    message::Summary,
};

/// An event whose fields are not borrowed yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice<'a> {
    Interim(Stream, Summary),
    Head { stream: Stream, summary: Summary, is_repeated: bool, ends: bool },
    Trailers(Stream),
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
