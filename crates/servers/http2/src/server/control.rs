//! Frames that control the connection and its windows.

use super::{
    event::Event,
    notice::{Notice, Step},
    slot::Slot,
    state::Server,
};
use crate::{
    code::ErrorCode,
    frame::{Header, flag, write},
    hpack::INITIAL_TABLE_SIZE,
    rule::Rule,
    settings::End,
    window::INITIAL_WINDOW,
};

impl Server {
    pub(super) fn reset_by_client(
        &mut self,
        stream: u32,
        code: u32,
    ) -> Result<Step<'static>, Rule> {
        if !self.remove(stream) {
            self.answered.forget(stream);
            return Ok(Step::Continue);
        }
        self.count_reset()?;
        let code = ErrorCode(code);
        Ok(Step::Report(Notice::Other(Event::Reset { stream, code })))
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
            let change = i64::from(self.config.stream_window) - i64::from(INITIAL_WINDOW);
            for slot in self.streams.iter_mut() {
                slot.receive_window.adjust(change);
            }
            self.decoder.set_limit(self.config.header_table as usize);
            return Ok(Step::Continue);
        }
        let before = i64::from(self.peer.initial_window_size);
        self.peer.apply(payload, End::Client)?;
        self.updates_table |= self.peer.header_table_size < INITIAL_TABLE_SIZE as u32;
        let change = i64::from(self.peer.initial_window_size) - before;
        let is_overflow = |slot: &mut Slot| !slot.send_window.adjust(change);
        if change != 0 && self.streams.iter_mut().any(is_overflow) {
            return Err(Rule::WindowSettingOverflow);
        }
        self.is_settled = true;
        write::settings_ack(out);
        if change > 0 {
            self.continue_responses(out);
        }
        Ok(Step::Continue)
    }

    /// Raises a window for the content of responses (RFC 9113, 6.9).
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
            self.continue_responses(out);
            return Ok(Step::Continue);
        }
        let Some(slot) = self.streams.get_mut(stream) else { return Ok(Step::Continue) };
        if increment == 0 {
            return self.wrong(stream, Rule::ZeroStreamIncrement, out);
        }
        if !slot.send_window.adjust(increment) {
            return self.wrong(stream, Rule::StreamWindowOverflow, out);
        }
        self.continue_response(stream, out);
        Ok(Step::Continue)
    }
}
