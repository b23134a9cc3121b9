//! DATA frames: the content of responses.

use super::{
    event::Event,
    notice::{Notice, Step},
    state::Client,
};
use crate::{
    connection::reader::{Data, Reader, Use, take},
    frame::{Header, flag},
    rule::Rule,
};

impl Client {
    /// Starts to read a DATA frame. Its padding counts for flow control, too (RFC 9113, 6.9.1).
    #[inline]
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
        let (usage, rule) = match self.streams.get_mut(stream).map(|slot| slot.admit(length)) {
            None => (Use::Discard, None),
            Some(Err(rule)) => (Use::Discard, Some(rule)),
            Some(Ok(())) => (Use::Report, None),
        };
        let step = match rule {
            Some(rule) => self.wrong(stream, rule, out),
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
    #[inline]
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
        } else if !ends {
            self.count_idle_frame()?;
        }
        // The caller may have cancelled it meanwhile.
        if let Some(slot) = self.streams.get_mut(stream).filter(|_| usage == Use::Report) {
            slot.received += u64::from(content);
            let is_too_long = slot.declared.is_some_and(|length| slot.received > length);
            let rule = match slot.is_bare {
                true if content > 0 => Some(Rule::ContentForbidden),
                false if is_too_long || ends && !slot.has_declared_length() => {
                    Some(Rule::ContentLength)
                }
                _ => None,
            };
            if let Some(rule) = rule {
                data.usage = Use::Discard;
                step = self.wrong(stream, rule, out);
            }
        }
        self.reader = Reader::Data(data);
        Ok(step)
    }

    /// Reads more of a DATA frame.
    #[inline]
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
        let ends = is_whole && data.ends;
        if is_whole {
            self.credit(out);
            if !ends {
                self.credit_stream(data.stream, out);
            }
        }
        let slot = self.streams.get(data.stream).filter(|_| data.usage == Use::Report);
        match slot.map(|slot| slot.stream()) {
            Some(stream) if ends || !bytes.is_empty() => {
                if ends {
                    self.complete(stream.id);
                }
                Step::Report(Notice::Other(Event::Content { stream, bytes, ends }))
            }
            _ if is_whole => Step::Continue,
            _ => Step::Wait,
        }
    }
}
