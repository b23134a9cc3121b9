//! HEADERS and CONTINUATION frames: the heads and trailers of requests.

use super::{
    MAX_BLOCK, MAX_CONTINUATIONS,
    notice::{Notice, Step},
    request,
    slot::Slot,
    state::Server,
};
use crate::{
    connection::fields,
    frame::{self, Header, flag},
    rule::Rule,
    window::Window,
};

impl Server {
    #[inline]
    pub(super) fn headers(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        let fragment = frame::fragment(header, payload)?;
        let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
        if header.has(flag::END_HEADERS) {
            return self.fields(stream, ends, fragment, out);
        }
        (self.block.stream, self.block.ends) = (stream, ends);
        self.block.continuations = 0;
        self.block.bytes.clear();
        self.block.bytes.extend_from_slice(fragment);
        Ok(Step::Continue)
    }

    pub(super) fn continue_block(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        self.block.continuations += 1;
        if self.block.continuations > MAX_CONTINUATIONS {
            return Err(Rule::TooManyContinuations);
        }
        if self.block.bytes.len() + payload.len() > MAX_BLOCK {
            return Err(Rule::BlockTooLarge);
        }
        self.block.bytes.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            return Ok(Step::Continue);
        }
        self.block.stream = 0;
        let bytes = std::mem::take(&mut self.block.bytes);
        let step = self.fields(header.stream, self.block.ends, &bytes, out);
        self.block.bytes = bytes;
        step
    }

    /// Handles a complete field block.
    #[inline]
    fn fields(
        &mut self,
        stream: u32,
        ends: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        if stream > self.last_stream && !self.is_draining {
            self.idle_frames = 0;
            let is_repeated = self.head.read(block, &mut self.decoder, request::head)?;
            return self.begin_request(stream, is_repeated, ends, out);
        }
        self.trailers.read(block, &mut self.decoder, fields::trailers)?;
        if self.streams.get(stream).is_none() {
            // On a stream that was reset, or opened after GOAWAY.
            self.count_idle_frame()?;
            return Ok(Step::Continue);
        }
        self.idle_frames = 0;
        match self.end_request(stream, ends) {
            Ok(true) => Ok(Step::Report(Notice::Trailers(stream))),
            Ok(false) => Ok(Step::Continue),
            Err(rule) => self.wrong(stream, rule, out),
        }
    }

    /// Opens a stream for the head that was read last.
    #[inline]
    fn begin_request(
        &mut self,
        stream: u32,
        is_repeated: bool,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        self.remember_gap(stream);
        self.last_stream = stream;
        if self.streams.len() >= self.config.max_streams {
            return self.refuse(stream, Rule::TooManyStreams.code(), out);
        }
        let summary = match self.head.summary {
            Ok(summary) if ends && summary.content_length.is_some_and(|length| length > 0) => {
                return self.refuse(stream, Rule::ContentLength.code(), out);
            }
            Ok(summary) => summary,
            Err(rule) => return self.refuse(stream, rule.code(), out),
        };
        self.streams.insert(Slot {
            id: stream,
            send_window: Window::new(self.peer.initial_window_size),
            receive_window: Window::new(self.stream_window()),
            is_whole: ends,
            unsent: None,
            declared: summary.content_length,
            received: 0,
        });
        Ok(Step::Report(Notice::Request { stream, summary, is_repeated, ends }))
    }

    /// Handles the trailers that were read last. Returns whether they are reported: not if the request was
    /// answered before.
    fn end_request(&mut self, stream: u32, ends: bool) -> Result<bool, Rule> {
        let summary = self.trailers.summary;
        let slot = self.streams.get_mut(stream).ok_or(Rule::ClosedStream)?;
        if slot.is_whole {
            return Err(Rule::HalfClosedStream);
        }
        if !ends {
            return Err(Rule::TrailersWithoutEnd);
        }
        summary?;
        if !slot.has_declared_length() {
            return Err(Rule::ContentLength);
        }
        slot.is_whole = true;
        Ok(slot.unsent.is_none())
    }
}
