//! An event whose fields are not borrowed yet.

use super::{
    event::{Event, Stream},
    message::Summary,
};

/// An event whose fields are not borrowed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice<'a> {
    Interim(Stream, Summary),
    Head { stream: Stream, summary: Summary, is_repeated: bool, ends: bool },
    Trailers(Stream),
    Other(Event<'a>),
}
