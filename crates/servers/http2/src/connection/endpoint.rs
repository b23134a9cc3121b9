//! Where the two ends differ.

use super::{
    reader::{Step, Use},
    state::Connection,
};
use crate::{code::ErrorCode, frame::Header, rule::Rule};

/// The result of a step of the reader.
pub(crate) type Received<'a, E> = Result<Step<<E as Endpoint>::Notice<'a>>, Rule>;

/// An end of a connection.
pub(crate) trait Endpoint: Sized {
    /// What only this end knows about a stream.
    type Exchange: Copy + Default;

    /// An event whose fields are not borrowed yet.
    type Notice<'a>;

    fn connection(&mut self) -> &mut Connection<Self::Exchange>;

    /// Takes what precedes the next frame: bytes that are no frames, or an event.
    fn begin<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Received<'a, Self>;

    /// Closes the connection because of an error.
    fn fail(&mut self, code: ErrorCode, out: &mut Vec<u8>);

    /// Whether the stream was not opened yet.
    fn is_idle(&self, stream: u32) -> bool;

    /// Checks that a frame with content or fields may arrive on its stream.
    fn check_open(&self, header: Header) -> Result<(), Rule>;

    /// Handles a complete field block.
    fn fields<'a>(
        &mut self,
        stream: u32,
        ends: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Received<'a, Self>;

    /// Returns what becomes of the content of a DATA frame, or the rule of its stream that it violates.
    fn admit(&mut self, header: Header, out: &mut Vec<u8>) -> Result<Use, Rule>;

    /// Handles content of an open stream: empty only if it ends.
    fn content<'a>(
        &mut self,
        stream: u32,
        bytes: &'a [u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Option<Self::Notice<'a>>;

    /// The peer reset a stream.
    fn reset_by_peer<'a>(&mut self, stream: u32, code: ErrorCode) -> Received<'a, Self>;

    /// Handles a SETTINGS frame.
    fn settings<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Received<'a, Self>;

    /// Handles a GOAWAY frame.
    fn go_away<'a>(&mut self, payload: &'a [u8]) -> Received<'a, Self>;

    /// The peer raised the window of an open stream, or of the connection (0).
    fn raised<'a>(&mut self, stream: u32, out: &mut Vec<u8>) -> Step<Self::Notice<'a>>;

    /// Resets a stream on which the peer violated a rule, if it is open.
    fn wrong<'a>(&mut self, stream: u32, rule: Rule, out: &mut Vec<u8>) -> Received<'a, Self>;
}
