//! What a server receives.

use super::{
    event::{Event, Request},
    notice::Notice,
    request,
    state::{Exchange, Server},
};
use crate::{
    code::ErrorCode,
    connection::{
        endpoint::{Endpoint, Received},
        fields, frames,
        reader::{Step, Use, take},
        state::Connection,
    },
    frame::{Header, Kind, flag, write},
    hpack::INITIAL_TABLE_SIZE,
    rule::Rule,
    settings::End,
};

impl Server {
    /// Takes bytes off the front of `input`, and returns the next event. Returns `None` if it is
    /// incomplete; the next call must then pass the remaining `input` again, with more bytes behind it. At
    /// most [`MAX_FRAME`](super::MAX_FRAME) bytes remain. Appends to `out` what the client is owed: this server's preface,
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
        let notice = frames::next(self, input, out)?;
        Ok(notice.map(|notice| self.event(notice)))
    }

    #[inline]
    fn event<'a>(&'a self, notice: Notice<'a>) -> Event<'a> {
        match notice {
            Notice::Request { stream, summary, is_repeated, ends } => {
                let request = Request::new(&self.head.fields, summary, is_repeated, ends);
                Event::Request { stream, request }
            }
            Notice::Trailers(stream) => {
                Event::Trailers { stream, fields: &self.connection.trailers.fields }
            }
            Notice::Other(event) => event,
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

    /// Refuses a stream before it is open.
    pub(super) fn refuse<'a>(
        &mut self,
        stream: u32,
        code: ErrorCode,
        out: &mut Vec<u8>,
    ) -> Received<'a, Server> {
        self.connection.reset(stream, code, out);
        self.count_reset()?;
        Ok(Step::Continue)
    }
}

impl Endpoint for Server {
    type Exchange = Exchange;
    type Notice<'a> = Notice<'a>;

    #[inline]
    fn connection(&mut self) -> &mut Connection<Exchange> {
        &mut self.connection
    }

    #[inline]
    fn begin<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Received<'a, Self> {
        if self.preface < write::PREFACE.len() && !self.is_closed() {
            self.read_preface(input, out)?;
        }
        Ok(Step::Continue)
    }

    fn fail(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.close(code, out);
    }

    /// Streams of servers have even numbers, and this one opens none. After GOAWAY, numbers of ignored streams are
    /// not tracked.
    #[inline]
    fn is_idle(&self, stream: u32) -> bool {
        stream.is_multiple_of(2) || stream > self.last_stream && !self.is_draining
    }

    #[inline]
    fn check_open(&self, Header { kind, stream, .. }: Header) -> Result<(), Rule> {
        if kind == Kind::DATA && self.is_idle(stream) {
            Err(Rule::IdleStream)
        } else if stream.is_multiple_of(2) {
            Err(Rule::StreamOrder)
        } else if stream > self.last_stream
            || self.connection.streams.get(stream).is_some()
            || self.connection.resets.permits(stream)
        {
            Ok(())
        } else if self.gaps.iter().any(|(first, end)| (*first..*end).contains(&stream)) {
            Err(Rule::StreamOrder)
        } else {
            Err(Rule::ClosedStream)
        }
    }

    #[inline]
    fn fields<'a>(
        &mut self,
        stream: u32,
        ends: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Received<'a, Self> {
        let Connection { streams, decoder, trailers, idle_frames, .. } = &mut self.connection;
        if stream > self.last_stream && !self.is_draining {
            *idle_frames = 0;
            let is_repeated = self.head.read(block, decoder, request::head)?;
            return self.begin_request(stream, is_repeated, ends, out);
        }
        trailers.read(block, decoder, fields::trailers)?;
        if streams.get(stream).is_none() {
            // On a stream that was reset, or opened after GOAWAY.
            self.connection.count_idle_frame()?;
            return Ok(Step::Continue);
        }
        *idle_frames = 0;
        match self.end_request(stream, ends) {
            Ok(true) => Ok(Step::Report(Notice::Trailers(stream))),
            Ok(false) => Ok(Step::Continue),
            Err(rule) => self.wrong(stream, rule, out),
        }
    }

    fn admit(&mut self, header: Header, out: &mut Vec<u8>) -> Result<Use, Rule> {
        let Header { length, stream, .. } = header;
        let Some(slot) = self.connection.streams.get_mut(stream) else {
            let (ends, is_written) = (header.has(flag::END_STREAM), out.is_empty());
            if self.answered.must_reset(stream, length, ends, is_written) {
                write::reset(out, stream, ErrorCode::NO_ERROR);
            }
            return Ok(Use::Discard);
        };
        if slot.exchange.is_whole {
            return Err(Rule::HalfClosedStream);
        }
        if slot.receive_window.take(length) {
            Ok(Use::Report)
        } else {
            Err(Rule::StreamWindowExceeded)
        }
    }

    /// Content of a request that is answered is discarded.
    fn content<'a>(
        &mut self,
        stream: u32,
        bytes: &'a [u8],
        ends: bool,
        _: &mut Vec<u8>,
    ) -> Option<Notice<'a>> {
        let exchange = &mut self.connection.streams.get_mut(stream)?.exchange;
        exchange.is_whole |= ends;
        let is_awaited = exchange.unsent.is_none();
        is_awaited.then_some(Notice::Other(Event::Content { stream, bytes, ends }))
    }

    fn reset_by_peer<'a>(&mut self, stream: u32, code: ErrorCode) -> Received<'a, Self> {
        if !self.remove(stream) {
            self.answered.forget(stream);
            return Ok(Step::Continue);
        }
        self.count_reset()?;
        Ok(Step::Report(Notice::Other(Event::Reset { stream, code })))
    }

    fn settings<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Received<'a, Self> {
        let change = self.connection.settings(header, payload, End::Client, out)?;
        self.updates_table |= self.connection.peer.header_table_size < INITIAL_TABLE_SIZE as u32;
        if change.is_some_and(|change| change > 0) {
            self.continue_responses(out);
        }
        Ok(Step::Continue)
    }

    /// The client opens no streams any longer, and this server opens none.
    fn go_away<'a>(&mut self, _: &'a [u8]) -> Received<'a, Self> {
        Ok(Step::Continue)
    }

    fn raised<'a>(&mut self, stream: u32, out: &mut Vec<u8>) -> Step<Notice<'a>> {
        if stream == 0 {
            self.continue_responses(out);
        } else {
            self.continue_response(stream, out);
        }
        Step::Continue
    }

    fn wrong<'a>(&mut self, stream: u32, rule: Rule, out: &mut Vec<u8>) -> Received<'a, Self> {
        if !self.reset(stream, rule.code(), out) {
            return Ok(Step::Continue);
        }
        self.count_reset()?;
        Ok(Step::Report(Notice::Other(Event::Wrong { stream, rule })))
    }
}
