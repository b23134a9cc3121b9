//! HEADERS and CONTINUATION frames: the heads and trailers of responses.

use super::{
    MAX_BLOCK, MAX_CONTINUATIONS, MAX_INTERIM, message,
    notice::{Notice, Step},
    slot::Phase,
    state::Client,
};
use crate::{
    connection::fields,
    frame::{self, Header, flag},
    rule::Rule,
};

impl Client {
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
        let phase = self.streams.get(stream).map(|slot| slot.phase);
        if phase == Some(Phase::Head) {
            self.idle_frames = 0;
            let is_repeated = self.head.read(block, &mut self.decoder, message::head)?;
            return Ok(match self.begin_response(stream, is_repeated, ends) {
                Ok(notice) => Step::Report(notice),
                Err(rule) => self.wrong(stream, rule, out),
            });
        }
        self.trailers.read(block, &mut self.decoder, fields::trailers)?;
        if phase.is_none() {
            self.count_idle_frame()?;
            return Ok(Step::Continue);
        }
        self.idle_frames = 0;
        Ok(match self.end_response(stream, ends) {
            Ok(notice) => Step::Report(notice),
            Err(rule) => self.wrong(stream, rule, out),
        })
    }

    /// Handles the head that was read last.
    #[inline]
    fn begin_response(
        &mut self,
        stream: u32,
        is_repeated: bool,
        ends: bool,
    ) -> Result<Notice<'static>, Rule> {
        let summary = self.head.summary?;
        let slot = self.streams.get_mut(stream).ok_or(Rule::ClosedStream)?;
        let known = slot.stream();
        if summary.status < 200 {
            slot.interim += 1;
            if ends {
                return Err(Rule::InterimEnds);
            }
            if slot.interim > MAX_INTERIM {
                return Err(Rule::TooManyInterim);
            }
            return Ok(Notice::Interim(known, summary));
        }
        slot.phase = Phase::Content;
        slot.is_bare |= matches!(summary.status, 204 | 304);
        slot.declared = summary.content_length;
        if ends {
            if !slot.has_declared_length() {
                return Err(Rule::ContentLength);
            }
            self.complete(stream);
        }
        Ok(Notice::Head { stream: known, summary, is_repeated, ends })
    }

    /// Handles the fields behind a head that were read last.
    fn end_response(&mut self, stream: u32, ends: bool) -> Result<Notice<'static>, Rule> {
        let slot = self.streams.get(stream).ok_or(Rule::ClosedStream)?;
        let known = slot.stream();
        if slot.phase == Phase::Complete {
            return Err(Rule::HalfClosedStream);
        }
        if !ends {
            return Err(Rule::TrailersWithoutEnd);
        }
        self.trailers.summary?;
        if !slot.has_declared_length() {
            return Err(Rule::ContentLength);
        }
        self.complete(stream);
        Ok(Notice::Trailers(known))
    }
}
