//! The rules that a peer can violate: for each its scope, its error code, its section and a sentence.

use crate::code::ErrorCode;
use std::fmt;

/// What a violation ends (RFC 9113, 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The connection: a GOAWAY frame with the code is sent, and nothing more is interpreted.
    Connection,
    /// One stream: a RST_STREAM frame with the code is sent, and the connection continues.
    Stream,
}

/// Generates [`Rule`] and its table.
macro_rules! rules {
    ($($Name:ident: $Scope:ident $code:ident, $section:literal, $why:literal;)*) => {
        /// A rule that the peer violated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $why] $Name,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Rule] = &[$(Rule::$Name),*];

            /// What the violation ends.
            pub const fn scope(self) -> Scope {
                match self { $(Rule::$Name => Scope::$Scope),* }
            }

            /// The code that is sent to the peer.
            pub const fn code(self) -> ErrorCode {
                match self { $(Rule::$Name => ErrorCode::$code),* }
            }

            /// Where the rule is: an RFC and a section of it.
            pub const fn section(self) -> &'static str {
                match self { $(Rule::$Name => $section),* }
            }

            /// A sentence that says what is wrong. It never quotes the peer.
            pub const fn why(self) -> &'static str {
                match self { $(Rule::$Name => $why),* }
            }
        }
    };
}

rules! {
    // Frames.
    PrefaceInvalid: Connection PROTOCOL_ERROR, "RFC 9113, 3.4",
        "The connection does not start with the preface of HTTP/2.";
    SettingsMissing: Connection PROTOCOL_ERROR, "RFC 9113, 3.4",
        "The first frame is not SETTINGS.";
    FrameTooLarge: Connection FRAME_SIZE_ERROR, "RFC 9113, 4.2",
        "A frame is longer than 16384 bytes.";
    FrameTooShort: Connection FRAME_SIZE_ERROR, "RFC 9113, 4.2",
        "A frame is too short for the fields that its type and flags require.";
    PaddingTooLong: Connection PROTOCOL_ERROR, "RFC 9113, 6.1 and 6.2",
        "The padding is as long as the payload of its frame, or longer.";
    DataOnConnection: Connection PROTOCOL_ERROR, "RFC 9113, 6.1",
        "A DATA frame has no stream.";
    HeadersOnConnection: Connection PROTOCOL_ERROR, "RFC 9113, 6.2",
        "A HEADERS frame has no stream.";
    PriorityOnConnection: Connection PROTOCOL_ERROR, "RFC 9113, 6.3",
        "A PRIORITY frame has no stream.";
    PriorityLength: Stream FRAME_SIZE_ERROR, "RFC 9113, 6.3",
        "The payload of a PRIORITY frame is not 5 bytes long.";
    ResetOnConnection: Connection PROTOCOL_ERROR, "RFC 9113, 6.4",
        "A RST_STREAM frame has no stream.";
    ResetLength: Connection FRAME_SIZE_ERROR, "RFC 9113, 6.4",
        "The payload of a RST_STREAM frame is not 4 bytes long.";
    SettingsOnStream: Connection PROTOCOL_ERROR, "RFC 9113, 6.5",
        "A SETTINGS frame has a stream.";
    SettingsLength: Connection FRAME_SIZE_ERROR, "RFC 9113, 6.5",
        "The length of a SETTINGS frame is not a multiple of 6 bytes.";
    SettingsAckLength: Connection FRAME_SIZE_ERROR, "RFC 9113, 6.5",
        "An acknowledgment of SETTINGS has a payload.";
    SettingsAckUnexpected: Connection PROTOCOL_ERROR, "RFC 9113, 6.5.3",
        "Settings are acknowledged that were not sent.";
    PushEnabled: Connection PROTOCOL_ERROR, "RFC 9113, 6.5.2",
        "SETTINGS_ENABLE_PUSH of a server is not 0.";
    PushSetting: Connection PROTOCOL_ERROR, "RFC 9113, 6.5.2",
        "SETTINGS_ENABLE_PUSH is neither 0 nor 1.";
    WindowSettingTooLarge: Connection FLOW_CONTROL_ERROR, "RFC 9113, 6.5.2",
        "SETTINGS_INITIAL_WINDOW_SIZE is larger than 2147483647.";
    FrameSizeSetting: Connection PROTOCOL_ERROR, "RFC 9113, 6.5.2",
        "SETTINGS_MAX_FRAME_SIZE is not between 16384 and 16777215.";
    Pushed: Connection PROTOCOL_ERROR, "RFC 9113, 6.6",
        "A PUSH_PROMISE frame arrived, although push is disabled.";
    PingOnStream: Connection PROTOCOL_ERROR, "RFC 9113, 6.7",
        "A PING frame has a stream.";
    PingLength: Connection FRAME_SIZE_ERROR, "RFC 9113, 6.7",
        "The payload of a PING frame is not 8 bytes long.";
    GoAwayOnStream: Connection PROTOCOL_ERROR, "RFC 9113, 6.8",
        "A GOAWAY frame has a stream.";
    GoAwayIncreased: Connection PROTOCOL_ERROR, "RFC 9113, 6.8",
        "The last stream of a GOAWAY frame is larger than that of an earlier one.";
    WindowUpdateLength: Connection FRAME_SIZE_ERROR, "RFC 9113, 6.9",
        "The payload of a WINDOW_UPDATE frame is not 4 bytes long.";
    ZeroIncrement: Connection PROTOCOL_ERROR, "RFC 9113, 6.9",
        "A WINDOW_UPDATE of the connection has an increment of 0.";
    ZeroStreamIncrement: Stream PROTOCOL_ERROR, "RFC 9113, 6.9",
        "A WINDOW_UPDATE of a stream has an increment of 0.";
    BlockInterrupted: Connection PROTOCOL_ERROR, "RFC 9113, 6.10",
        "Another frame than CONTINUATION of the same stream arrived inside a field block.";
    ContinuationWithoutBlock: Connection PROTOCOL_ERROR, "RFC 9113, 6.10",
        "A CONTINUATION frame has no field block to continue.";

    // Streams and flow control.
    IdleStream: Connection PROTOCOL_ERROR, "RFC 9113, 5.1",
        "A frame has a stream that was never opened.";
    ClosedStream: Connection STREAM_CLOSED, "RFC 9113, 5.1",
        "A frame has a stream that is closed.";
    HalfClosedStream: Stream STREAM_CLOSED, "RFC 9113, 5.1",
        "A frame follows the end of its stream.";
    StreamOrder: Connection PROTOCOL_ERROR, "RFC 9113, 5.1.1",
        "A new stream has an even number, or a smaller one than an earlier stream.";
    TooManyStreams: Stream REFUSED_STREAM, "RFC 9113, 5.1.2",
        "More streams are open than SETTINGS_MAX_CONCURRENT_STREAMS permits.";
    StreamWindowExceeded: Stream FLOW_CONTROL_ERROR, "RFC 9113, 6.9.1",
        "A DATA frame is longer than the flow-control window of its stream.";
    WindowOverflow: Connection FLOW_CONTROL_ERROR, "RFC 9113, 6.9.1",
        "A WINDOW_UPDATE makes the window of the connection larger than 2147483647 bytes.";
    StreamWindowOverflow: Stream FLOW_CONTROL_ERROR, "RFC 9113, 6.9.1",
        "A WINDOW_UPDATE makes the window of a stream larger than 2147483647 bytes.";
    WindowSettingOverflow: Connection FLOW_CONTROL_ERROR, "RFC 9113, 6.9.2",
        "SETTINGS_INITIAL_WINDOW_SIZE makes the window of a stream larger than 2147483647 bytes.";

    // Field blocks.
    BlockTruncated: Connection COMPRESSION_ERROR, "RFC 9113, 4.3",
        "A field block ends inside a field.";
    TableSizeMissing: Connection COMPRESSION_ERROR, "RFC 9113, 4.3.1",
        "A field block does not start with the size of the reduced dynamic table.";
    IndexTooLarge: Connection COMPRESSION_ERROR, "RFC 7541, 2.3.3",
        "An index is larger than the tables.";
    TableSizeLate: Connection COMPRESSION_ERROR, "RFC 7541, 4.2",
        "A dynamic table size update follows a field.";
    IntegerTooLarge: Connection COMPRESSION_ERROR, "RFC 7541, 5.1",
        "An integer has more than 4 bytes after its prefix.";
    HuffmanEnd: Connection COMPRESSION_ERROR, "RFC 7541, 5.2",
        "A Huffman-coded string contains the symbol EOS.";
    HuffmanPadding: Connection COMPRESSION_ERROR, "RFC 7541, 5.2",
        "The padding of a Huffman-coded string is not the start of EOS.";
    HuffmanPaddingTooLong: Connection COMPRESSION_ERROR, "RFC 7541, 5.2",
        "The padding of a Huffman-coded string is longer than 7 bits.";
    IndexZero: Connection COMPRESSION_ERROR, "RFC 7541, 6.1",
        "An indexed field has the index 0.";
    TableSizeTooLarge: Connection COMPRESSION_ERROR, "RFC 7541, 6.3",
        "A dynamic table size update exceeds SETTINGS_HEADER_TABLE_SIZE.";

    // Messages.
    DataBeforeHead: Stream PROTOCOL_ERROR, "RFC 9113, 8.1",
        "Content precedes the head of its response.";
    InterimEnds: Stream PROTOCOL_ERROR, "RFC 9113, 8.1",
        "An interim response (1xx) ends its stream.";
    TrailersWithoutEnd: Stream PROTOCOL_ERROR, "RFC 9113, 8.1",
        "A HEADERS frame after the head does not end its stream.";
    PseudoInTrailers: Stream PROTOCOL_ERROR, "RFC 9113, 8.1",
        "Trailers contain a pseudo-header field.";
    ContentLength: Stream PROTOCOL_ERROR, "RFC 9113, 8.1.1",
        "The content is shorter or longer than Content-Length.";
    ContentLengthValue: Stream PROTOCOL_ERROR, "RFC 9113, 8.1.1",
        "Content-Length is not a number, or has several values.";
    UppercaseName: Stream PROTOCOL_ERROR, "RFC 9113, 8.2.1",
        "The name of a field has an uppercase letter.";
    FieldName: Stream PROTOCOL_ERROR, "RFC 9113, 8.2.1",
        "The name of a field is empty, or has a byte that is not permitted in names.";
    FieldValue: Stream PROTOCOL_ERROR, "RFC 9113, 8.2.1",
        "The value of a field has NUL, CR or LF, or starts or ends with white space.";
    ConnectionField: Stream PROTOCOL_ERROR, "RFC 9113, 8.2.2",
        "A field is specific to connections of HTTP/1.1.";
    PseudoUnknown: Stream PROTOCOL_ERROR, "RFC 9113, 8.3",
        "A pseudo-header field is not one of those of its message.";
    PseudoLate: Stream PROTOCOL_ERROR, "RFC 9113, 8.3",
        "A pseudo-header field follows a regular field.";
    PseudoRepeated: Stream PROTOCOL_ERROR, "RFC 9113, 8.3",
        "A request has a pseudo-header field twice.";
    PseudoMissing: Stream PROTOCOL_ERROR, "RFC 9113, 8.3.1",
        "A request has no :method, :scheme or :path.";
    PathValue: Stream PROTOCOL_ERROR, "RFC 9113, 8.3.1",
        "The value of :path neither starts with / nor is *.";
    HostDiffers: Stream PROTOCOL_ERROR, "RFC 9113, 8.3.1",
        "Host differs from :authority.";
    ConnectFields: Stream PROTOCOL_ERROR, "RFC 9113, 8.5",
        "A CONNECT request has :scheme or :path, or no :authority.";
    StatusRepeated: Stream PROTOCOL_ERROR, "RFC 9113, 8.3",
        "A response has :status twice.";
    StatusMissing: Stream PROTOCOL_ERROR, "RFC 9113, 8.3.2",
        "A response has no :status.";
    StatusValue: Stream PROTOCOL_ERROR, "RFC 9113, 8.3.2",
        "The status is not a number from 100 to 599.";
    StatusSwitching: Stream PROTOCOL_ERROR, "RFC 9113, 8.6",
        "The status is 101, which HTTP/2 does not have.";
    ContentForbidden: Stream PROTOCOL_ERROR, "RFC 9110, 6.4.1",
        "A response that has no content (HEAD, 204, 304) has content.";

    // Limits of this crate.
    BlockTooLarge: Connection ENHANCE_YOUR_CALM, "RFC 9113, 10.5.1",
        "A field block is longer than 65536 bytes.";
    TooManyContinuations: Connection ENHANCE_YOUR_CALM, "RFC 9113, 10.5",
        "A field block has more than 128 CONTINUATION frames.";
    TooManyIdleFrames: Connection ENHANCE_YOUR_CALM, "RFC 9113, 10.5",
        "More than 10000 frames arrived without progress of any request.";
    TooManyResets: Connection ENHANCE_YOUR_CALM, "RFC 9113, 10.5",
        "1000 more streams were reset than answered.";
    FieldsTooLarge: Stream ENHANCE_YOUR_CALM, "RFC 9113, 10.5.1",
        "The fields exceed SETTINGS_MAX_HEADER_LIST_SIZE.";
    TooManyInterim: Stream ENHANCE_YOUR_CALM, "RFC 9113, 10.5",
        "More than 16 interim responses (1xx) precede a response.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.why(), self.code(), self.section())
    }
}

impl std::error::Error for Rule {}
