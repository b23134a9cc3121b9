//! The state of an open stream.

use super::event::Stream;
use crate::{connection::streams::Keyed, rule::Rule, window::Window};

/// The state of an open stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The identifier; 0 if the slot is free.
    pub id: u32,
    pub place: u32,
    /// Bytes of the request's content that are not sent yet.
    pub unsent: u64,
    pub send_window: Window,
    pub receive_window: Window,
    pub phase: Phase,
    /// Whether the response must not have content.
    pub is_bare: bool,
    /// Number of interim responses.
    pub interim: u8,
    /// Content-Length of the response.
    pub declared: Option<u64>,
    /// Bytes of content received.
    pub received: u64,
}

/// How much of the response has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No final head.
    Head,
    /// The head.
    Content,
    /// All of it.
    Complete,
}

impl Keyed for Slot {
    const FREE: Self = Slot {
        id: 0,
        place: 0,
        unsent: 0,
        send_window: Window::ZERO,
        receive_window: Window::ZERO,
        phase: Phase::Head,
        is_bare: false,
        interim: 0,
        declared: None,
        received: 0,
    };

    #[inline]
    fn id(&self) -> u32 {
        self.id
    }
}

impl Slot {
    /// The stream as the caller knows it.
    #[inline]
    pub fn stream(&self) -> Stream {
        Stream { id: self.id, place: self.place }
    }

    /// Admits a DATA frame with a payload of this length.
    #[inline]
    pub fn admit(&mut self, length: u32) -> Result<(), Rule> {
        if self.phase == Phase::Complete {
            return Err(Rule::HalfClosedStream);
        }
        if !self.receive_window.take(length) {
            return Err(Rule::StreamWindowExceeded);
        }
        if self.phase == Phase::Head { Err(Rule::DataBeforeHead) } else { Ok(()) }
    }

    /// Whether the content has the declared length.
    #[inline]
    pub fn has_declared_length(&self) -> bool {
        self.is_bare || self.declared.is_none_or(|length| length == self.received)
    }
}
