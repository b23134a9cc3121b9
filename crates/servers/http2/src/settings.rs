//! What a peer announces in SETTINGS frames (RFC 9113, 6.5.2).

use crate::{
    frame,
    hpack::INITIAL_TABLE_SIZE,
    rule::Rule,
    window::{INITIAL_WINDOW, MAX_WINDOW},
};

/// The end of a connection that announces settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// The settings of a peer. Unknown ones are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum size of the dynamic table for what is sent to the peer, in bytes.
    pub header_table_size: u32,
    /// Maximum number of open streams.
    pub max_concurrent_streams: u32,
    /// Size of the window of a new stream, in bytes.
    pub initial_window_size: u32,
    /// Maximum length of a frame's payload, in bytes.
    pub max_frame_size: u32,
    /// Maximum size of the fields that are sent to the peer, in bytes, as [`Fields::size`](crate::hpack::Fields::size)
    /// counts it. Advisory.
    pub max_header_list_size: u32,
}

impl Default for Settings {
    /// The values that apply before the first SETTINGS frame.
    fn default() -> Self {
        Settings {
            header_table_size: INITIAL_TABLE_SIZE as u32,
            max_concurrent_streams: u32::MAX,
            initial_window_size: INITIAL_WINDOW,
            max_frame_size: frame::MIN_MAX_SIZE,
            max_header_list_size: u32::MAX,
        }
    }
}

impl Settings {
    /// The number of a setting, as in SETTINGS frames.
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;

    /// Applies the payload of a SETTINGS frame, in the order of its values.
    pub(crate) fn apply(&mut self, payload: &[u8], from: End) -> Result<(), Rule> {
        let (values, _) = payload.as_chunks::<6>();
        for [i, j, a, b, c, d] in values {
            let value = u32::from_be_bytes([*a, *b, *c, *d]);
            match u16::from_be_bytes([*i, *j]) {
                Settings::HEADER_TABLE_SIZE => self.header_table_size = value,
                Settings::ENABLE_PUSH if value > 1 && from == End::Client => {
                    return Err(Rule::PushSetting);
                }
                Settings::ENABLE_PUSH if value != 0 && from == End::Server => {
                    return Err(Rule::PushEnabled);
                }
                Settings::MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
                Settings::INITIAL_WINDOW_SIZE if value > MAX_WINDOW => {
                    return Err(Rule::WindowSettingTooLarge);
                }
                Settings::INITIAL_WINDOW_SIZE => self.initial_window_size = value,
                Settings::MAX_FRAME_SIZE
                    if !(frame::MIN_MAX_SIZE..=frame::MAX_MAX_SIZE).contains(&value) =>
                {
                    return Err(Rule::FrameSizeSetting);
                }
                Settings::MAX_FRAME_SIZE => self.max_frame_size = value,
                Settings::MAX_HEADER_LIST_SIZE => self.max_header_list_size = value,
                _ => {}
            }
        }
        Ok(())
    }
}
