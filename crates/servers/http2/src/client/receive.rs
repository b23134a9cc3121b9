//! What a client receives.

use super::{
    event::{Event, Head},
    message::{self, Summary},
    notice::Notice,
    slot::Exchange,
    state::Client,
};
use crate::{
    code::ErrorCode,
    connection::{
        endpoint::{Endpoint, Received},
        fields, frames,
        reader::{Step, Use},
        state::Connection,
    },
    frame::{self, Header},
    rule::Rule,
    settings::End,
};

impl Client {
    /// Takes bytes off the front of `input`, and returns the next event. Returns `None` if it is
    /// incomplete; the next call must then pass the remaining `input` again, with more bytes behind it. At
    /// most [`MAX_FRAME`](super::MAX_FRAME) bytes remain. Appends to `out` what the server is owed: acknowledgments,
    /// WINDOW_UPDATE and RST_STREAM. Send it, whatever is returned.
    ///
    /// # Errors
    /// The server violated a rule of the scope [`Connection`](crate::Scope::Connection). GOAWAY is appended.
    /// All later input is taken, and nothing in it is interpreted; [`Client::pending`] has the requests that
    /// were not answered.
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
        let fields = &self.head.fields;
        match notice {
            Notice::Head { stream, summary, is_repeated, ends } => {
                let Summary { status, content_length } = summary;
                let head = Head { status, content_length, fields, is_repeated, ends };
                Event::Head { stream, head }
            }
            Notice::Interim(stream, Summary { status, .. }) => {
                Event::Interim { stream, status, fields }
            }
            Notice::Trailers(stream) => {
                Event::Trailers { stream, fields: &self.connection.trailers.fields }
            }
            Notice::Other(event) => event,
        }
    }
}

impl Endpoint for Client {
    type Exchange = Exchange;
    type Notice<'a> = Notice<'a>;

    #[inline]
    fn connection(&mut self) -> &mut Connection<Exchange> {
        &mut self.connection
    }

    /// Closes the next stream that the server does not process.
    #[inline]
    fn begin<'a>(&mut self, _: &mut &'a [u8], _: &mut Vec<u8>) -> Received<'a, Self> {
        while let Some(id) = self.unprocessed.pop() {
            // The caller may have cancelled it.
            if let Some(stream) = self.connection.streams.get(id).map(|slot| slot.stream()) {
                self.connection.streams.remove(id);
                return Ok(Step::Report(Notice::Other(Event::NotProcessed { stream })));
            }
        }
        Ok(Step::Continue)
    }

    fn fail(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.close(code, out);
    }

    /// Streams of servers have even numbers.
    #[inline]
    fn is_idle(&self, stream: u32) -> bool {
        stream.is_multiple_of(2) || stream >= self.next_stream
    }

    #[inline]
    fn check_open(&self, Header { stream, .. }: Header) -> Result<(), Rule> {
        if self.connection.streams.get(stream).is_some() {
            Ok(())
        } else if self.is_idle(stream) {
            Err(Rule::IdleStream)
        } else if self.connection.resets.permits(stream) {
            Ok(())
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
        let has_head = streams.get(stream).map(|slot| slot.exchange.has_head);
        let notice = if has_head == Some(false) {
            *idle_frames = 0;
            let is_repeated = self.head.read(block, decoder, message::head)?;
            self.begin_response(stream, is_repeated, ends, out)
        } else {
            trailers.read(block, decoder, fields::trailers)?;
            if has_head.is_none() {
                self.connection.count_idle_frame()?;
                return Ok(Step::Continue);
            }
            *idle_frames = 0;
            self.end_response(stream, ends, out)
        };
        notice.map_or_else(|rule| self.wrong(stream, rule, out), |notice| Ok(Step::Report(notice)))
    }

    #[inline]
    fn admit(&mut self, header: Header, _: &mut Vec<u8>) -> Result<Use, Rule> {
        let Some(slot) = self.connection.streams.get_mut(header.stream) else {
            return Ok(Use::Discard);
        };
        if !slot.receive_window.take(header.length) {
            return Err(Rule::StreamWindowExceeded);
        }
        if slot.exchange.has_head { Ok(Use::Report) } else { Err(Rule::DataBeforeHead) }
    }

    #[inline]
    fn content<'a>(
        &mut self,
        stream: u32,
        bytes: &'a [u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Option<Notice<'a>> {
        let stream = self.connection.streams.get(stream)?.stream();
        if ends {
            self.complete(stream.id, out);
        }
        Some(Notice::Other(Event::Content { stream, bytes, ends }))
    }

    fn reset_by_peer<'a>(&mut self, stream: u32, code: ErrorCode) -> Received<'a, Self> {
        let Some(slot) = self.connection.streams.get(stream) else { return Ok(Step::Continue) };
        let known = slot.stream();
        self.connection.idle_frames = 0;
        self.connection.streams.remove(stream);
        Ok(Step::Report(Notice::Other(Event::Reset { stream: known, code })))
    }

    fn settings<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Received<'a, Self> {
        let change = self.connection.settings(header, payload, End::Server, out)?;
        let report = |_| Step::Report(Notice::Other(Event::Settings(self.connection.peer)));
        Ok(change.map_or(Step::Continue, report))
    }

    fn go_away<'a>(&mut self, payload: &'a [u8]) -> Received<'a, Self> {
        let last_stream = frame::word(payload, 0) & 0x7fff_ffff;
        if self.last_stream.is_some_and(|before| last_stream > before) {
            return Err(Rule::GoAwayIncreased);
        }
        self.last_stream = Some(last_stream);
        let streams = self.connection.streams.iter();
        self.unprocessed.extend(streams.map(|slot| slot.id).filter(|id| *id > last_stream));
        self.unprocessed.sort_unstable_by(|a, b| b.cmp(a));
        let (code, debug) = (ErrorCode(frame::word(payload, 4)), payload.get(8..).unwrap_or(&[]));
        Ok(Step::Report(Notice::Other(Event::GoAway { last_stream, code, debug })))
    }

    fn raised<'a>(&mut self, stream: u32, _: &mut Vec<u8>) -> Step<Notice<'a>> {
        let slot = (stream != 0).then(|| self.connection.streams.get(stream)).flatten();
        Step::Report(Notice::Other(Event::Window { stream: slot.map(|slot| slot.stream()) }))
    }

    fn wrong<'a>(&mut self, stream: u32, rule: Rule, out: &mut Vec<u8>) -> Received<'a, Self> {
        let known = self.connection.streams.get(stream).map(|slot| slot.stream());
        self.cancel(stream, rule.code(), out);
        let report = |stream| Step::Report(Notice::Other(Event::Wrong { stream, rule }));
        Ok(known.map_or(Step::Continue, report))
    }
}
