//! Flow-control windows (RFC 9113, 5.2 and 6.9).

/// Maximum size of a window, in bytes.
pub(crate) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// The size of all windows at the start of a connection, in bytes (RFC 9113, 6.9.2).
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// How many bytes may be sent. A change of the settings can make it negative.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window(i64);

impl Window {
    pub fn new(size: u32) -> Self {
        Window(i64::from(size))
    }

    /// The number of bytes that may be sent.
    #[inline]
    pub fn available(self) -> u32 {
        self.0.max(0) as u32
    }

    /// Takes bytes that are sent. Returns `false`, and takes nothing, if there are too few.
    #[inline]
    pub fn take(&mut self, bytes: u32) -> bool {
        let is_enough = bytes == 0 || i64::from(bytes) <= self.0;
        if is_enough {
            self.0 -= i64::from(bytes);
        }
        is_enough
    }

    /// Adds bytes, or takes them without a limit. Returns whether the window is within its maximum.
    pub fn adjust(&mut self, bytes: i64) -> bool {
        self.0 += bytes;
        self.0 <= i64::from(MAX_WINDOW)
    }
}
