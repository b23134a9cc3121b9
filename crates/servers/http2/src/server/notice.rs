//! An event whose fields are not borrowed yet.

use super::{event::Event, request::Summary};

/// An event whose fields are not borrowed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice<'a> {
    Request { stream: u32, summary: Summary, is_repeated: bool, ends: bool },
    Trailers(u32),
    Other(Event<'a>),
}
