//! Limits of both ends.

/// Maximum length of the payload of a received frame, in bytes. It is never raised.
pub const MAX_FRAME: usize = crate::frame::MIN_MAX_SIZE as usize;

/// Maximum length of a received field block, in bytes, over all its frames.
pub const MAX_BLOCK: usize = 64 * 1024;

/// Maximum number of CONTINUATION frames of a field block.
pub const MAX_CONTINUATIONS: u32 = 128;

/// Maximum number of frames without progress of any request: neither a field block, nor content, nor
/// content that could be sent. SETTINGS, PING, PRIORITY, WINDOW_UPDATE, RST_STREAM of closed streams, GOAWAY,
/// empty DATA and unknown frames count.
pub const MAX_IDLE_FRAMES: u32 = 10_000;
