//! Frames that control the connection, and the ends of streams.

use super::{
    event::Event,
    notice::{Notice, Step},
    slot::Phase,
    state::Client,
};
use crate::{
    code::ErrorCode,
    frame::{self, Header, flag, write},
    rule::Rule,
    settings::End,
};

impl Client {
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode) -> Step<'static> {
        let Some(slot) = self.streams.get(stream) else { return Step::Continue };
        let (known, is_answered) = (slot.stream(), slot.phase == Phase::Complete);
        self.idle_frames = 0;
        self.streams.remove(stream);
        let event = Event::Reset { stream: known, code, is_answered };
        Step::Report(Notice::Other(event))
    }

    pub(super) fn settings(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        if header.has(flag::ACK) {
            if !std::mem::take(&mut self.awaits_ack) {
                return Err(Rule::SettingsAckUnexpected);
            }
            self.decoder.set_limit(self.config.header_table as usize);
            return Ok(Step::Continue);
        }
        let before = i64::from(self.peer.initial_window_size);
        self.peer.apply(payload, End::Server)?;
        let change = i64::from(self.peer.initial_window_size) - before;
        let mut slots = self.streams.iter_mut();
        if change != 0 && slots.any(|slot| !slot.send_window.adjust(change)) {
            return Err(Rule::WindowSettingOverflow);
        }
        self.is_settled = true;
        write::settings_ack(out);
        Ok(Step::Report(Notice::Other(Event::Settings(self.peer))))
    }

    /// Raises a window for the content of requests (RFC 9113, 6.9).
    pub(super) fn window(
        &mut self,
        stream: u32,
        increment: u32,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        let increment = i64::from(increment & 0x7fff_ffff);
        if stream == 0 {
            if increment == 0 {
                return Err(Rule::ZeroIncrement);
            }
            if !self.send_window.adjust(increment) {
                return Err(Rule::WindowOverflow);
            }
            return Ok(Step::Report(Notice::Other(Event::Window { stream: None })));
        }
        let Some(slot) = self.streams.get_mut(stream) else { return Ok(Step::Continue) };
        Ok(if increment == 0 {
            self.wrong(stream, Rule::ZeroStreamIncrement, out)
        } else if !slot.send_window.adjust(increment) {
            self.wrong(stream, Rule::StreamWindowOverflow, out)
        } else {
            Step::Report(Notice::Other(Event::Window { stream: Some(slot.stream()) }))
        })
    }

    pub(super) fn go_away<'a>(&mut self, payload: &'a [u8]) -> Result<Step<'a>, Rule> {
        let last_stream = frame::word(payload, 0) & 0x7fff_ffff;
        if self.last_stream.is_some_and(|before| last_stream > before) {
            return Err(Rule::GoAwayIncreased);
        }
        self.last_stream = Some(last_stream);
        let above = self.streams.iter().map(|slot| slot.id).filter(|id| *id > last_stream);
        self.unprocessed.extend(above);
        self.unprocessed.sort_unstable_by(|a, b| b.cmp(a));
        let (code, debug) = (ErrorCode(frame::word(payload, 4)), payload.get(8..).unwrap_or(&[]));
        Ok(Step::Report(Notice::Other(Event::GoAway { last_stream, code, debug })))
    }

    /// Closes the next stream that the server does not process.
    #[inline]
    pub(super) fn next_unprocessed(&mut self) -> Option<Event<'static>> {
        while let Some(id) = self.unprocessed.pop() {
            // The caller may have cancelled it.
            if let Some(stream) = self.streams.get(id).map(|slot| slot.stream()) {
                self.streams.remove(id);
                return Some(Event::NotProcessed { stream });
            }
        }
        None
    }

    /// Resets a stream on which the server violated a rule, if it is open.
    pub(super) fn wrong(&mut self, stream: u32, rule: Rule, out: &mut Vec<u8>) -> Step<'static> {
        let known = self.streams.get(stream).map(|slot| slot.stream());
        self.cancel(stream, rule.code(), out);
        known.map_or(Step::Continue, |stream| {
            Step::Report(Notice::Other(Event::Wrong { stream, rule }))
        })
    }
    /// The server ended a stream.
    #[inline]
    pub(super) fn complete(&mut self, stream: u32) {
        if let Some(slot) = self.streams.get_mut(stream) {
            slot.phase = Phase::Complete;
            if slot.unsent == 0 {
                self.streams.remove(stream);
            }
        }
    }
}
