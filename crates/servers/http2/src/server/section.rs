//! The heads and trailers of requests.

use super::{
    notice::Notice,
    state::{Exchange, Server},
};
use crate::{
    connection::{endpoint::Received, reader::Step, streams::Slot},
    rule::Rule,
    window::Window,
};

impl Server {
    /// Opens a stream for the head that was read last.
    #[inline]
    pub(super) fn begin_request<'a>(
        &mut self,
        stream: u32,
        is_repeated: bool,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Received<'a, Server> {
        self.remember_gap(stream);
        self.last_stream = stream;
        if self.connection.streams.len() >= self.connection.config.max_streams {
            return self.refuse(stream, Rule::TooManyStreams.code(), out);
        }
        let summary = match self.head.summary {
            Ok(summary) if ends && summary.content_length.is_some_and(|length| length > 0) => {
                return self.refuse(stream, Rule::ContentLength.code(), out);
            }
            Ok(summary) => summary,
            Err(rule) => return self.refuse(stream, rule.code(), out),
        };
        self.connection.streams.insert(Slot {
            id: stream,
            send_window: Window::new(self.connection.peer.initial_window_size),
            receive_window: Window::new(self.connection.stream_window),
            declared: summary.content_length,
            exchange: Exchange { is_whole: ends, unsent: None },
            ..Slot::default()
        });
        Ok(Step::Report(Notice::Request { stream, summary, is_repeated, ends }))
    }

    /// Handles the trailers that were read last. Returns whether they are reported: not if the request was
    /// answered before.
    pub(super) fn end_request(&mut self, stream: u32, ends: bool) -> Result<bool, Rule> {
        let summary = self.connection.trailers.summary;
        let slot = self.connection.streams.get_mut(stream).ok_or(Rule::ClosedStream)?;
        if slot.exchange.is_whole {
            return Err(Rule::HalfClosedStream);
        }
        if !ends {
            return Err(Rule::TrailersWithoutEnd);
        }
        summary?;
        if !slot.has_declared_length() {
            return Err(Rule::ContentLength);
        }
        slot.exchange.is_whole = true;
        Ok(slot.exchange.unsent.is_none())
    }
}
