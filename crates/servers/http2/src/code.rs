//! Error codes (RFC 9113, section 7).

use std::fmt;

/// The reason in a RST_STREAM or GOAWAY frame. Unknown codes are permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

/// Generates the constants and their names.
macro_rules! codes {
    ($($NAME:ident = $number:literal, $what:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $what] pub const $NAME: ErrorCode = ErrorCode($number);)*

            /// The name in the RFC; `None` for an unknown code.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(ErrorCode::$NAME => Some(stringify!($NAME)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0x0, "No error: a graceful end.";
    PROTOCOL_ERROR = 0x1, "A violation without a code of its own.";
    INTERNAL_ERROR = 0x2, "A failure of the sender.";
    FLOW_CONTROL_ERROR = 0x3, "A violation of flow control.";
    SETTINGS_TIMEOUT = 0x4, "Settings were not acknowledged in time.";
    STREAM_CLOSED = 0x5, "A frame on a closed stream.";
    FRAME_SIZE_ERROR = 0x6, "A frame with an invalid length.";
    REFUSED_STREAM = 0x7, "The request was not processed.";
    CANCEL = 0x8, "The stream is no longer needed.";
    COMPRESSION_ERROR = 0x9, "An invalid field block.";
    CONNECT_ERROR = 0xa, "The connection of a CONNECT request failed.";
    ENHANCE_YOUR_CALM = 0xb, "The peer causes excessive load.";
    INADEQUATE_SECURITY = 0xc, "The transport is not secure enough.";
    HTTP_1_1_REQUIRED = 0xd, "The request needs HTTP/1.1.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}
