//! The heads and trailers of responses.

use super::{MAX_INTERIM, notice::Notice, state::Client};
use crate::{code::ErrorCode, frame::write, rule::Rule};

impl Client {
    /// Handles the head that was read last.
    #[inline]
    pub(super) fn begin_response(
        &mut self,
        stream: u32,
        is_repeated: bool,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<Notice<'static>, Rule> {
        let summary = self.head.summary?;
        let slot = self.connection.streams.get_mut(stream).ok_or(Rule::ClosedStream)?;
        let known = slot.stream();
        if summary.status < 200 {
            slot.exchange.interim += 1;
            if ends {
                return Err(Rule::InterimEnds);
            }
            if slot.exchange.interim > MAX_INTERIM {
                return Err(Rule::TooManyInterim);
            }
            return Ok(Notice::Interim(known, summary));
        }
        slot.exchange.has_head = true;
        slot.is_bare |= matches!(summary.status, 204 | 304);
        slot.declared = summary.content_length;
        if ends {
            if !slot.has_declared_length() {
                return Err(Rule::ContentLength);
            }
            self.complete(stream, out);
        }
        Ok(Notice::Head { stream: known, summary, is_repeated, ends })
    }

    /// Handles the fields behind a head that were read last.
    pub(super) fn end_response(
        &mut self,
        stream: u32,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<Notice<'static>, Rule> {
        let slot = self.connection.streams.get(stream).ok_or(Rule::ClosedStream)?;
        let known = slot.stream();
        if !ends {
            return Err(Rule::TrailersWithoutEnd);
        }
        self.connection.trailers.summary?;
        if !slot.has_declared_length() {
            return Err(Rule::ContentLength);
        }
        self.complete(stream, out);
        Ok(Notice::Trailers(known))
    }

    /// The server ended a stream. If the request is not sent completely, the stream is reset, so that others can be
    /// opened: the server may never permit the rest (RFC 9113, 8.1).
    #[inline]
    pub(super) fn complete(&mut self, stream: u32, out: &mut Vec<u8>) {
        let streams = &mut self.connection.streams;
        if streams.get(stream).is_some_and(|slot| slot.exchange.unsent > 0) {
            write::reset(out, stream, ErrorCode::NO_ERROR);
        }
        streams.remove(stream);
    }
}
