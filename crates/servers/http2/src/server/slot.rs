//! The state of an open stream.

use crate::{connection::streams::Keyed, window::Window};

/// The state of an open stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The identifier; 0 if the slot is free.
    pub id: u32,
    pub send_window: Window,
    pub receive_window: Window,
    /// Whether the request is complete.
    pub is_whole: bool,
    /// Where the unsent part of its response is; `None` before the response.
    pub unsent: Option<u32>,
    /// Content-Length of the request.
    pub declared: Option<u64>,
    /// Bytes of content received.
    pub received: u64,
}

impl Keyed for Slot {
    const FREE: Self = Slot {
        id: 0,
        send_window: Window::ZERO,
        receive_window: Window::ZERO,
        is_whole: false,
        unsent: None,
        declared: None,
        received: 0,
    };

    #[inline]
    fn id(&self) -> u32 {
        self.id
    }
}

impl Slot {
    /// Whether the content has the declared length.
    #[inline]
    pub fn has_declared_length(&self) -> bool {
        self.declared.is_none_or(|length| length == self.received)
    }
}
