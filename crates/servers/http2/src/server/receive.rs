//! What a server receives.

use super::{
    MAX_FRAME, MAX_IDLE_FRAMES,
    event::{Event, Request},
    notice::{Notice, Step},
    state::Server,
};
use crate::{
    code::ErrorCode,
    connection::reader::{Reader, take},
    frame::{self, Header, Kind, flag, write},
    rule::Rule,
};

impl Server {
    /// Takes bytes off the front of `input`, and returns the next event. Returns `None` if it is
    /// incomplete; the next call must then pass the remaining `input` again, with more bytes behind it. At
    /// most [`MAX_FRAME`] bytes remain. Appends to `out` what the client is owed: this server's preface,
    /// acknowledgments, WINDOW_UPDATE, RST_STREAM, and content that waited for a window. Send it, whatever is
    /// returned.
    ///
    /// # Errors
    /// The client violated a rule of the scope [`Connection`](crate::Scope::Connection). GOAWAY is appended.
    /// All later input is taken, and nothing in it is interpreted.
    #[inline]
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, Rule> {
        match self.advance(input, out) {
            Ok(notice) => Ok(notice.map(|notice| self.event(notice))),
            Err(rule) => {
                self.close(rule.code(), out);
                Err(rule)
            }
        }
    }

    #[inline]
    fn event<'a>(&'a self, notice: Notice<'a>) -> Event<'a> {
        match notice {
            Notice::Request { stream, summary, is_repeated, ends } => {
                let request = Request::new(&self.head.fields, summary, is_repeated, ends);
                Event::Request { stream, request }
            }
            Notice::Trailers(stream) => Event::Trailers { stream, fields: &self.trailers.fields },
            Notice::Other(event) => event,
        }
    }

    #[inline]
    fn advance<'a>(
        &mut self,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Notice<'a>>, Rule> {
        if self.preface < write::PREFACE.len() && !self.is_closed() {
            self.read_preface(input, out)?;
        }
        loop {
            match self.step(input, out)? {
                Step::Wait => return Ok(None),
                Step::Continue => {}
                Step::Report(notice) => return Ok(Some(notice)),
            }
        }
    }

    /// Reads more of the preface. The answer follows when it is complete.
    #[cold]
    fn read_preface(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Rule> {
        let mut left = (write::PREFACE.len() - self.preface) as u32;
        let bytes = take(input, &mut left);
        let expected = &write::PREFACE[self.preface..self.preface + bytes.len()];
        if bytes != expected {
            return Err(Rule::PrefaceInvalid);
        }
        self.preface += bytes.len();
        if left == 0 {
            self.open(out);
        }
        Ok(())
    }

    #[inline]
    fn step<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Result<Step<'a>, Rule> {
        match self.reader {
            Reader::Header => {
                let Some((bytes, rest)) = input.split_first_chunk() else { return Ok(Step::Wait) };
                *input = rest;
                let header = Header::read(bytes);
                self.check(header)?;
                self.begin(header, out)
            }
            Reader::Whole(header) => {
                let length = header.length as usize;
                let Some((payload, rest)) = input.split_at_checked(length) else {
                    return Ok(Step::Wait);
                };
                *input = rest;
                self.reader = Reader::Header;
                self.frame(header, payload, out)
            }
            Reader::Padding(header, usage) => {
                let Some((&padding, rest)) = input.split_first() else { return Ok(Step::Wait) };
                *input = rest;
                let content = frame::split_padding(header.length as usize - 1, padding)? as u32;
                self.begin_content(header, (content, u32::from(padding)), usage, out)
            }
            Reader::Data(data) => Ok(self.continue_data(data, input, out)),
            Reader::Skip(mut left) => {
                take(input, &mut left);
                self.reader = if left == 0 { Reader::Header } else { Reader::Skip(left) };
                Ok(if left == 0 { Step::Continue } else { Step::Wait })
            }
            Reader::Closed => {
                *input = &[];
                Ok(Step::Wait)
            }
        }
    }

    /// Checks what a header alone shows.
    #[inline]
    fn check(&mut self, header: Header) -> Result<(), Rule> {
        let Header { length, kind, stream, .. } = header;
        let is_ack = header.has(flag::ACK);
        let is_on_stream = stream != 0;
        if !self.is_settled && (kind != Kind::SETTINGS || is_ack) {
            return Err(Rule::SettingsMissing);
        }
        if length > MAX_FRAME as u32 {
            return Err(Rule::FrameTooLarge);
        }
        if self.block.stream != 0 && (kind, stream) != (Kind::CONTINUATION, self.block.stream) {
            return Err(Rule::BlockInterrupted);
        }
        match kind {
            Kind::DATA if !is_on_stream => return Err(Rule::DataOnConnection),
            Kind::HEADERS if !is_on_stream => return Err(Rule::HeadersOnConnection),
            Kind::DATA if self.is_idle(stream) => return Err(Rule::IdleStream),
            Kind::DATA | Kind::HEADERS => return self.check_open(stream),
            Kind::CONTINUATION if self.block.stream == 0 => {
                return Err(Rule::ContinuationWithoutBlock);
            }
            Kind::CONTINUATION => return Ok(()),
            Kind::PRIORITY if !is_on_stream => return Err(Rule::PriorityOnConnection),
            Kind::RST_STREAM if !is_on_stream => return Err(Rule::ResetOnConnection),
            Kind::RST_STREAM if length != 4 => return Err(Rule::ResetLength),
            Kind::SETTINGS if is_on_stream => return Err(Rule::SettingsOnStream),
            Kind::SETTINGS if is_ack && length != 0 => return Err(Rule::SettingsAckLength),
            Kind::SETTINGS if !length.is_multiple_of(6) => return Err(Rule::SettingsLength),
            Kind::PUSH_PROMISE => return Err(Rule::Pushed),
            Kind::PING if is_on_stream => return Err(Rule::PingOnStream),
            Kind::PING if length != 8 => return Err(Rule::PingLength),
            Kind::GOAWAY if is_on_stream => return Err(Rule::GoAwayOnStream),
            Kind::GOAWAY if length < 8 => return Err(Rule::FrameTooShort),
            Kind::WINDOW_UPDATE if length != 4 => return Err(Rule::WindowUpdateLength),
            Kind::RST_STREAM | Kind::WINDOW_UPDATE if is_on_stream && self.is_idle(stream) => {
                return Err(Rule::IdleStream);
            }
            _ => {}
        }
        self.count_idle_frame()
    }

    /// Whether the client has not opened the stream. Those of servers have even numbers, and this one opens
    /// none. After GOAWAY, numbers of ignored streams are not tracked.
    #[inline]
    fn is_idle(&self, stream: u32) -> bool {
        stream.is_multiple_of(2) || stream > self.last_stream && !self.is_draining
    }

    /// Checks that frames with content or fields may arrive on a stream.
    #[inline]
    fn check_open(&self, stream: u32) -> Result<(), Rule> {
        if stream.is_multiple_of(2) {
            Err(Rule::StreamOrder)
        } else if stream > self.last_stream
            || self.streams.get(stream).is_some()
            || self.resets.permits(stream)
        {
            Ok(())
        } else if self.gaps.iter().any(|(first, end)| (*first..*end).contains(&stream)) {
            Err(Rule::StreamOrder)
        } else {
            Err(Rule::ClosedStream)
        }
    }

    pub(super) fn count_idle_frame(&mut self) -> Result<(), Rule> {
        self.idle_frames += 1;
        if self.idle_frames > MAX_IDLE_FRAMES { Err(Rule::TooManyIdleFrames) } else { Ok(()) }
    }

    /// Starts to read the payload of a frame.
    #[inline]
    fn begin(&mut self, header: Header, out: &mut Vec<u8>) -> Result<Step<'static>, Rule> {
        match header.kind {
            Kind::DATA => return self.begin_data(header, out),
            Kind::PRIORITY if header.length != 5 => {
                // An endpoint may treat an error of a stream as one of the connection (RFC 9113, 5.4), which is
                // the only way to report it for a stream that is not open.
                if self.streams.get(header.stream).is_none() {
                    return Err(Rule::PriorityLength);
                }
                self.reader = Reader::Skip(header.length);
                return self.wrong(header.stream, Rule::PriorityLength, out);
            }
            Kind::HEADERS
            | Kind::RST_STREAM
            | Kind::SETTINGS
            | Kind::PING
            | Kind::GOAWAY
            | Kind::WINDOW_UPDATE
            | Kind::CONTINUATION => self.reader = Reader::Whole(header),
            _ => self.reader = Reader::Skip(header.length),
        }
        Ok(Step::Continue)
    }

    /// Handles a frame that was read as a whole.
    #[inline]
    fn frame<'a>(
        &mut self,
        header: Header,
        payload: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'a>, Rule> {
        match header.kind {
            Kind::HEADERS => self.headers(header, payload, out),
            Kind::CONTINUATION => self.continue_block(header, payload, out),
            Kind::RST_STREAM => self.reset_by_client(header.stream, frame::word(payload, 0)),
            Kind::SETTINGS => self.settings(header, payload, out),
            Kind::PING => {
                if let Some(payload) = payload.first_chunk().filter(|_| !header.has(flag::ACK)) {
                    write::ping_ack(out, payload);
                }
                Ok(Step::Continue)
            }
            Kind::WINDOW_UPDATE => self.window(header.stream, frame::word(payload, 0), out),
            // GOAWAY: the client opens no streams any longer, and this server opens none.
            _ => Ok(Step::Continue),
        }
    }

    /// Resets a stream on which the client violated a rule, if it is open.
    pub(super) fn wrong(
        &mut self,
        stream: u32,
        rule: Rule,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        if !self.reset(stream, rule.code(), out) {
            return Ok(Step::Continue);
        }
        self.count_reset()?;
        Ok(Step::Report(Notice::Other(Event::Wrong { stream, rule })))
    }

    /// Refuses a stream before it is open.
    pub(super) fn refuse(
        &mut self,
        stream: u32,
        code: ErrorCode,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Rule> {
        write::reset(out, stream, code);
        self.resets.push(stream);
        self.count_reset()?;
        Ok(Step::Continue)
    }
}
