//! DATA frames: the content of requests.

use super::{
    event::Event,
    notice::{Notice, Step},
    state::Server,
};
use crate::{
    code::ErrorCode,
    connection::reader::{Data, Reader, Use, take},
    frame::{Header, flag, write},
    rule::Rule,
};

impl Server {
    /// Starts to read a DATA frame. Its padding counts for flow control, too (RFC 9113, 6.9.1).
    pub(super) fn begin_data(
        &mut self,
        header: Header,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        let Header { length, stream, .. } = header;
        if header.has(flag::PADDED) && length == 0 {
            return Err(Rule::FrameTooShort);
        }
        self.uncredited += length;
        let (usage, rule) = match self.streams.get_mut(stream) {
            None => {
                let has_written = out.is_empty();
                if self.answered.must_reset(
                    stream,
                    length,
                    header.has(flag::END_STREAM),
                    has_written,
                ) {
                    write::reset(out, stream, ErrorCode::NO_ERROR);
                }
                (Use::Discard, None)
            }
            Some(slot) if slot.is_whole => (Use::Discard, Some(Rule::HalfClosedStream)),
            Some(slot) => match slot.receive_window.take(length) {
                true => (Use::Report, None),
                false => (Use::Discard, Some(Rule::StreamWindowExceeded)),
            },
        };
        let step = match rule {
            Some(rule) => self.wrong(stream, rule, out)?,
            None => Step::Continue,
        };
        if header.has(flag::PADDED) {
            self.reader = Reader::Padding(header, usage);
            return Ok(step);
        }
        let next = self.begin_content(header, (length, 0), usage, out)?;
        Ok(if rule.is_some() { step } else { next })
    }

    /// Starts to read the content of a DATA frame: its length, and that of the padding behind it.
    pub(super) fn begin_content(
        &mut self,
        header: Header,
        (content, padding): (u32, u32),
        usage: Use,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
        let mut data = Data { stream, content, padding, ends, usage };
        let mut step = Step::Continue;
        if content > 0 && usage == Use::Report {
            self.idle_frames = 0;
        } else if usage == Use::Discard || !ends {
            self.count_idle_frame()?;
        }
        // The caller may have reset it meanwhile.
        if let Some(slot) = self.streams.get_mut(stream).filter(|_| usage == Use::Report) {
            slot.received += u64::from(content);
            let is_too_long = slot.declared.is_some_and(|length| slot.received > length);
            if is_too_long || ends && !slot.has_declared_length() {
                data.usage = Use::Discard;
                step = self.wrong(stream, Rule::ContentLength, out)?;
            }
        }
        self.reader = Reader::Data(data);
        Ok(step)
    }

    /// Reads more of a DATA frame.
    pub(super) fn continue_data<'a>(
        &mut self,
        mut data: Data,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Step<'a> {
        let bytes = take(input, &mut data.content);
        take(input, &mut data.padding);
        let is_whole = data.content == 0 && data.padding == 0;
        self.reader = if is_whole { Reader::Header } else { Reader::Data(data) };
        let (stream, ends) = (data.stream, is_whole && data.ends);
        if is_whole {
            self.credit(out);
            if !ends {
                self.credit_stream(stream, out);
            }
        }
        let slot = self.streams.get_mut(stream).filter(|_| data.usage == Use::Report);
        match slot {
            // Content of a request that is answered is discarded.
            Some(slot) if ends || !bytes.is_empty() => {
                slot.is_whole |= ends;
                if slot.unsent.is_none() {
                    return Step::Report(Notice::Other(Event::Content { stream, bytes, ends }));
                }
                if is_whole { Step::Continue } else { Step::Wait }
            }
            _ if is_whole => Step::Continue,
            _ => Step::Wait,
        }
    }

    /// Raises the receive window of the connection when half of it is used. So the client never exceeds it:
    /// a frame is shorter than the other half.
    fn credit(&mut self, out: &mut Vec<u8>) {
        if self.uncredited >= self.config.connection_window / 2 {
            write::window_update(out, 0, std::mem::take(&mut self.uncredited));
        }
    }

    /// Raises the receive window of a stream when half of it is used.
    fn credit_stream(&mut self, stream: u32, out: &mut Vec<u8>) {
        if self.awaits_ack {
            return;
        }
        let full = self.config.stream_window;
        let Some(slot) = self.streams.get_mut(stream).filter(|slot| !slot.is_whole) else { return };
        let used = full.saturating_sub(slot.receive_window.available());
        if used > 0 && used >= full / 2 {
            slot.receive_window.adjust(i64::from(used));
            write::window_update(out, stream, used);
        }
    }
}
