//! The state of a connection that both ends have.

use super::{
    config::{Config, OutOfRange},
    limits::MAX_IDLE_FRAMES,
    memo::Memo,
    reader::{Block, Reader},
    resets::Resets,
    streams::Streams,
};
use crate::{
    code::ErrorCode,
    frame::{Header, flag, write},
    hpack::Decoder,
    rule::Rule,
    settings::{End, Settings},
    window::{INITIAL_WINDOW, Window},
};

/// The state of a connection; `E` is what only one of the ends knows about a stream.
#[derive(Debug)]
pub(crate) struct Connection<E> {
    pub config: Config,
    /// The settings of the peer.
    pub peer: Settings,
    pub streams: Streams<E>,
    /// Streams that this end reset.
    pub resets: Resets,
    pub send_window: Window,
    /// The receive window of a new stream, in bytes.
    pub stream_window: u32,
    /// Bytes received since the last WINDOW_UPDATE of the connection.
    pub uncredited: u32,
    pub reader: Reader,
    /// The last frame of which the header was read.
    pub last_frame: Option<Header>,
    pub block: Block,
    pub decoder: Decoder,
    pub trailers: Memo<()>,
    /// Whether the peer's first SETTINGS frame has arrived.
    pub is_settled: bool,
    /// Whether this end's SETTINGS frame is not acknowledged yet.
    pub awaits_ack: bool,
    /// Number of frames since the last progress of a request.
    pub idle_frames: u32,
}

impl<E: Copy + Default> Connection<E> {
    /// Creates the state of a new connection, with room for this many streams.
    pub fn new(config: Config, streams: u32) -> Result<Self, OutOfRange> {
        config.check()?;
        Ok(Connection {
            config,
            peer: Settings::default(),
            streams: Streams::new(streams),
            resets: Resets::default(),
            send_window: Window::new(INITIAL_WINDOW),
            stream_window: config.stream_window,
            uncredited: 0,
            reader: Reader::Header,
            last_frame: None,
            block: Block::default(),
            decoder: Decoder::new(config.header_list as usize),
            trailers: Memo::new(()),
            is_settled: false,
            awaits_ack: false,
            idle_frames: 0,
        })
    }

    /// Whether the connection failed or was closed: nothing more is interpreted.
    pub fn is_closed(&self) -> bool {
        matches!(self.reader, Reader::Closed)
    }

    /// Appends SETTINGS, with a setting that only this end has, and WINDOW_UPDATE.
    pub fn announce(&mut self, own: (u16, u32), out: &mut Vec<u8>) {
        let values = [
            (Settings::HEADER_TABLE_SIZE, self.config.header_table),
            own,
            (Settings::INITIAL_WINDOW_SIZE, self.config.stream_window),
            (Settings::MAX_HEADER_LIST_SIZE, self.config.header_list),
        ];
        write::settings(out, &values);
        self.awaits_ack = true;
        let more = self.config.connection_window - INITIAL_WINDOW;
        if more > 0 {
            write::window_update(out, 0, more);
        }
    }

    /// Handles a SETTINGS frame of the end `from`. Returns the change of the windows for content that is sent;
    /// `None` for an acknowledgment.
    pub fn settings(
        &mut self,
        header: Header,
        payload: &[u8],
        from: End,
        out: &mut Vec<u8>,
    ) -> Result<Option<i64>, Rule> {
        if header.has(flag::ACK) {
            return self.acknowledged().map(|()| None);
        }
        let before = i64::from(self.peer.initial_window_size);
        self.peer.apply(payload, from)?;
        let change = i64::from(self.peer.initial_window_size) - before;
        let mut slots = self.streams.iter_mut();
        if change != 0 && slots.any(|slot| !slot.send_window.adjust(change)) {
            return Err(Rule::WindowSettingOverflow);
        }
        self.is_settled = true;
        write::settings_ack(out);
        Ok(Some(change))
    }

    /// The peer knows the settings of this end.
    fn acknowledged(&mut self) -> Result<(), Rule> {
        if !std::mem::take(&mut self.awaits_ack) {
            return Err(Rule::SettingsAckUnexpected);
        }
        let change = i64::from(self.config.stream_window) - i64::from(self.stream_window);
        for slot in self.streams.iter_mut() {
            slot.receive_window.adjust(change);
        }
        self.stream_window = self.config.stream_window;
        self.decoder.set_limit(self.config.header_table as usize);
        Ok(())
    }

    pub fn count_idle_frame(&mut self) -> Result<(), Rule> {
        self.idle_frames += 1;
        if self.idle_frames > MAX_IDLE_FRAMES { Err(Rule::TooManyIdleFrames) } else { Ok(()) }
    }

    /// Raises the receive window of the connection when half of it is used. So the peer never exceeds it:
    /// a frame is shorter than the other half.
    #[inline]
    pub fn credit(&mut self, out: &mut Vec<u8>) {
        if self.uncredited >= self.config.connection_window / 2 {
            write::window_update(out, 0, std::mem::take(&mut self.uncredited));
        }
    }

    /// Raises the receive window of a stream when half of it is used.
    #[inline]
    pub fn credit_stream(&mut self, stream: u32, out: &mut Vec<u8>) {
        let full = self.stream_window;
        let Some(slot) = self.streams.get_mut(stream) else { return };
        let used = full - slot.receive_window.available();
        if used > 0 && used >= full / 2 {
            slot.receive_window.adjust(i64::from(used));
            write::window_update(out, stream, used);
        }
    }

    /// Appends RST_STREAM for a stream that this end has removed.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        write::reset(out, stream, code);
        self.resets.push(stream);
    }
}
