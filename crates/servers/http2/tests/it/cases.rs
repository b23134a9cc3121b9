//! What violates a rule at either end, and what must follow from it.

use crate::run::{
    Outcome, Seen, data, frame, frames, go_away, headers, reset, settings, window_update,
};
use regatta_http2::{
    ErrorCode, Rule, Scope,
    client::{Config, MAX_BLOCK, MAX_CONTINUATIONS, MAX_IDLE_FRAMES},
    frame::{Kind, flag},
};

/// Bytes of a peer that violate a rule, behind those that an [`End`] starts with.
pub struct Case {
    pub rule: Rule,
    pub bytes: Vec<u8>,
    pub config: Config,
}

/// An end of a connection, with the streams 1 and 3 open. No message was on 2, 11 and later ones.
pub struct End {
    pub config: Config,
    /// The next stream on which a head arrives, and the fields of a valid one.
    pub stream: u32,
    pub fields: Vec<(&'static str, &'static str)>,
    /// What precedes content on stream 1: its head, unless that has arrived.
    pub head: Vec<u8>,
    /// A stream that is closed.
    pub closed: u32,
    /// A field of a head in the static table, and the start of a literal with the name of another one.
    pub indexed: u8,
    pub literal: u8,
    /// The streams that peers violate.
    pub wrong: &'static [u32],
    /// The outcome when its input arrives in these pieces.
    pub served: fn(Config, &[&[u8]]) -> Outcome,
}

impl End {
    pub fn case(&self, rule: Rule, parts: &[Vec<u8>]) -> Case {
        Case { rule, bytes: parts.concat(), config: self.config }
    }

    /// A HEADERS frame on the next stream with this field block.
    pub fn coded(&self, block: &[u8]) -> Vec<u8> {
        frame(Kind::HEADERS, flag::END_HEADERS, self.stream, block)
    }

    /// A head on the next stream with this field behind its others.
    pub fn with(&self, name: &str, value: &str) -> Vec<u8> {
        headers(self.stream, &[&self.fields[..], &[(name, value)]].concat(), false)
    }

    /// The violations that both ends find.
    pub fn cases(&self) -> Vec<Case> {
        let all = [
            self.frame_cases(),
            self.header_cases(),
            self.stream_cases(),
            self.block_cases(),
            self.message_cases(),
            self.limit_cases(),
        ];
        all.into_iter().flatten().collect()
    }

    fn frame_cases(&self) -> Vec<Case> {
        use Rule::*;
        let case = |rule, bytes: Vec<u8>| self.case(rule, &[bytes]);
        vec![
            case(FrameTooLarge, frame(Kind::DATA, 0, 1, &[0; 16_385])),
            case(FrameTooLarge, frame(Kind(0x99), 0, 0, &[0; 16_385])),
            case(FrameTooShort, frame(Kind::DATA, flag::PADDED, 1, b"")),
            case(FrameTooShort, frame(Kind::GOAWAY, 0, 0, &[0; 7])),
            case(DataOnConnection, data(0, b"a", false)),
            case(HeadersOnConnection, headers(0, &self.fields, false)),
            case(PriorityOnConnection, frame(Kind::PRIORITY, 0, 0, &[0; 5])),
            case(PriorityLength, frame(Kind::PRIORITY, 0, 1, &[0; 4])),
            case(PriorityLength, frame(Kind::PRIORITY, 0, 1, &[0; 6])),
            case(ResetOnConnection, reset(0, ErrorCode::CANCEL)),
            case(ResetLength, frame(Kind::RST_STREAM, 0, 1, &[0; 3])),
            case(ResetLength, frame(Kind::RST_STREAM, 0, 1, &[0; 5])),
            case(SettingsOnStream, frame(Kind::SETTINGS, 0, 1, b"")),
            case(SettingsLength, frame(Kind::SETTINGS, 0, 0, &[0; 7])),
            case(SettingsAckLength, frame(Kind::SETTINGS, flag::ACK, 0, &[0; 6])),
            case(WindowSettingTooLarge, settings(&[(4, 1 << 31)])),
            case(FrameSizeSetting, settings(&[(5, (1 << 14) - 1)])),
            case(FrameSizeSetting, settings(&[(5, 1 << 24)])),
            case(Pushed, frame(Kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\0\0\0\x02\x82")),
            case(PingOnStream, frame(Kind::PING, 0, 1, &[0; 8])),
            case(PingLength, frame(Kind::PING, 0, 0, &[0; 7])),
            case(GoAwayOnStream, frame(Kind::GOAWAY, 0, 1, &[0; 8])),
            case(WindowUpdateLength, frame(Kind::WINDOW_UPDATE, 0, 1, &[0; 3])),
            case(ZeroIncrement, window_update(0, 0)),
            case(ZeroStreamIncrement, window_update(1, 0)),
            case(ZeroStreamIncrement, window_update(1, 1 << 31)),
            case(ZeroStreamIncrement, window_update(3, 0)),
        ]
    }

    fn header_cases(&self) -> Vec<Case> {
        use Rule::*;
        let case = |rule, parts: &[Vec<u8>]| self.case(rule, parts);
        let padded = |kind, stream, payload: &[u8]| frame(kind, flag::PADDED, stream, payload);
        let start = || frame(Kind::HEADERS, 0, self.stream, &[self.indexed]);
        let next = self.stream;
        vec![
            case(FrameTooShort, &[padded(Kind::HEADERS, next, b"")]),
            case(FrameTooShort, &[frame(Kind::HEADERS, flag::PRIORITY, next, &[0; 4])]),
            case(PaddingTooLong, &[self.head.clone(), padded(Kind::DATA, 1, b"\x03ab")]),
            case(PaddingTooLong, &[padded(Kind::HEADERS, next, &[2, self.indexed])]),
            case(BlockInterrupted, &[start(), data(1, b"", true)]),
            case(BlockInterrupted, &[start(), frame(Kind::CONTINUATION, 4, 3, b"")]),
            case(BlockInterrupted, &[start(), frame(Kind::CONTINUATION, 4, 7, b"")]),
            case(BlockInterrupted, &[start(), frame(Kind(0x99), 0, next, b"")]),
            case(ContinuationWithoutBlock, &[frame(Kind::CONTINUATION, 4, 1, b"\x88")]),
            case(
                ContinuationWithoutBlock,
                &[self.head.clone(), frame(Kind::CONTINUATION, 4, 1, b"")],
            ),
            case(ContinuationWithoutBlock, &[frame(Kind::CONTINUATION, 4, 0, b"")]),
        ]
    }

    fn stream_cases(&self) -> Vec<Case> {
        use Rule::*;
        let case = |rule, parts: &[Vec<u8>]| self.case(rule, parts);
        let small = |bytes: Vec<u8>| Case {
            config: Config { stream_window: 10, connection_window: 65_535, ..self.config },
            ..self.case(StreamWindowExceeded, &[self.head.clone(), bytes])
        };
        vec![
            case(IdleStream, &[data(11, b"a", false)]),
            case(IdleStream, &[data(2, b"a", false)]),
            case(IdleStream, &[reset(11, ErrorCode::CANCEL)]),
            case(IdleStream, &[window_update(2, 1)]),
            case(ClosedStream, &[data(self.closed, b"a", false)]),
            case(ClosedStream, &[headers(self.closed, &self.fields, false)]),
            case(ClosedStream, &[reset(1, ErrorCode::CANCEL), data(1, b"a", false)]),
            small(data(1, &[0; 11], false)),
            small(frame(Kind::DATA, flag::PADDED, 1, &[9; 11])),
            case(WindowOverflow, &[window_update(0, (1 << 31) - 1)]),
            case(StreamWindowOverflow, &[window_update(1, (1 << 31) - 1)]),
            case(
                WindowSettingOverflow,
                &[window_update(1, (1 << 31) - 1 - 65_535), settings(&[(4, 65_536)])],
            ),
        ]
    }

    fn block_cases(&self) -> Vec<Case> {
        use Rule::*;
        let case = |rule, block: &[u8]| self.case(rule, &[self.coded(block)]);
        let End { indexed, literal, .. } = *self;
        vec![
            case(BlockTruncated, &[literal, 3, b'2', b'0']),
            case(BlockTruncated, &[literal]),
            case(BlockTruncated, &[0xff]),
            case(BlockTruncated, &[0x3f]),
            case(IndexTooLarge, &[0xbe]),
            case(IndexTooLarge, &[0x7f, 0, 0]),
            case(TableSizeLate, &[indexed, 0x20]),
            case(IntegerTooLarge, &[0xff, 0x80, 0x80, 0x80, 0x80, 0]),
            case(HuffmanEnd, &[literal, 0x84, 0xff, 0xff, 0xff, 0xff]),
            case(HuffmanPadding, &[literal, 0x81, 0b0000_0110]),
            case(HuffmanPaddingTooLong, &[literal, 0x82, 0b0000_0111, 0xff]),
            case(IndexZero, &[0x80]),
            case(TableSizeTooLarge, &[0x3f, 0xe2, 0x1f, indexed]),
        ]
    }

    fn message_cases(&self) -> Vec<Case> {
        use Rule::*;
        let case = |rule, parts: &[Vec<u8>]| self.case(rule, parts);
        let behind =
            |fields: &[(&str, &str)], ends| [self.head.clone(), headers(1, fields, ends)].concat();
        let two = || self.with("content-length", "2");
        let head = |more: &[(&str, &str)], ends| {
            headers(self.stream, &[&self.fields[..], more].concat(), ends)
        };
        let lengths = [("content-length", "2"), ("content-length", "3")];
        let mut all = vec![
            case(TrailersWithoutEnd, &[behind(&[("a", "b")], false)]),
            case(PseudoInTrailers, &[behind(&self.fields[..1], true)]),
            case(FieldName, &[behind(&[("a\0", "c")], true)]),
            case(ContentLength, &[two(), data(self.stream, b"a", true)]),
            case(ContentLength, &[two(), data(self.stream, b"abc", false)]),
            case(
                ContentLength,
                &[two(), data(self.stream, b"a", false), headers(self.stream, &[], true)],
            ),
            case(ContentLength, &[head(&lengths[..1], true)]),
            case(ContentLengthValue, &[head(&lengths, false)]),
        ];
        let wrong = [
            (ContentLengthValue, "content-length", "+2"),
            (ContentLengthValue, "content-length", ""),
            (ContentLengthValue, "content-length", "99999999999999999999"),
            (UppercaseName, "X-a", "b"),
            (FieldName, "", "b"),
            (FieldName, "a b", "c"),
            (FieldName, "a:", "c"),
            (FieldName, "a\x7f", "c"),
            (FieldName, "a\x1f", "c"),
            (FieldName, "\u{e9}", "c"),
            (FieldValue, "a", "b\r\nc: d"),
            (FieldValue, "a", "b\0"),
            (FieldValue, "a", " b"),
            (FieldValue, "a", "b\t"),
            (ConnectionField, "connection", "close"),
            (ConnectionField, "transfer-encoding", "chunked"),
            (ConnectionField, "keep-alive", "5"),
            (ConnectionField, "proxy-connection", "a"),
            (ConnectionField, "upgrade", "h2c"),
            (ConnectionField, "te", "gzip"),
        ];
        all.extend(wrong.map(|(rule, name, value)| case(rule, &[self.with(name, value)])));
        all
    }

    fn limit_cases(&self) -> Vec<Case> {
        use Rule::*;
        let case = |rule, parts: &[Vec<u8>]| self.case(rule, parts);
        let flood = |bytes: Vec<u8>| bytes.repeat(MAX_IDLE_FRAMES as usize + 1);
        let next = self.stream;
        let start = frame(Kind::HEADERS, 0, next, b"");
        let more = |bytes: &[u8]| frame(Kind::CONTINUATION, 0, next, bytes);
        let content = |bytes: Vec<u8>| [self.head.clone(), flood(bytes)].concat();
        vec![
            case(
                BlockTooLarge,
                &[
                    start.clone(),
                    more(&[self.indexed; 16_384]).repeat(MAX_BLOCK / 16_384),
                    frame(Kind::CONTINUATION, 4, next, &[self.indexed]),
                ],
            ),
            case(TooManyContinuations, &[start, more(b"").repeat(MAX_CONTINUATIONS as usize + 1)]),
            case(TooManyIdleFrames, &[flood(settings(&[]))]),
            case(TooManyIdleFrames, &[flood(frame(Kind::PING, 0, 0, &[0; 8]))]),
            case(TooManyIdleFrames, &[flood(frame(Kind::PRIORITY, 0, 1, &[0; 5]))]),
            case(TooManyIdleFrames, &[flood(frame(Kind(0x99), 0, 1, b""))]),
            case(TooManyIdleFrames, &[flood(window_update(0, 1))]),
            case(TooManyIdleFrames, &[flood(window_update(3, 1))]),
            case(TooManyIdleFrames, &[flood(reset(self.closed, ErrorCode::CANCEL))]),
            case(TooManyIdleFrames, &[flood(go_away(99, ErrorCode::NO_ERROR, b""))]),
            case(TooManyIdleFrames, &[content(data(1, b"", false))]),
            case(TooManyIdleFrames, &[content(frame(Kind::DATA, flag::PADDED, 1, b"\x01\0"))]),
            Case {
                config: Config { header_list: 200, ..self.config },
                ..case(FieldsTooLarge, &[self.with("x", &"x".repeat(200))])
            },
        ]
    }

    /// Each ends its stream or connection with its code.
    pub fn assert_ends(&self, cases: Vec<Case>) {
        for Case { rule, bytes, config } in cases {
            let (seen, out) = (self.served)(config, &[&bytes, &ping()]);
            let frames = frames(&out);
            let name = format!("{rule:?} {:?}", bytes.get(..40).unwrap_or(&bytes));
            let (last, payload) = frames.last().expect("an answer");
            if rule.scope() == Scope::Connection {
                assert_eq!(seen.last(), Some(&Seen::Failed(rule)), "{name}");
                assert_eq!(last.kind, Kind::GOAWAY, "{name}");
                assert_eq!(payload[4..], rule.code().0.to_be_bytes(), "{name}");
                continue;
            }
            let resets: Vec<_> =
                frames.iter().filter(|(header, _)| header.kind == Kind::RST_STREAM).collect();
            assert_eq!(resets.len(), 1, "{name}");
            let (stream, code) = (resets[0].0.stream, &resets[0].1[..]);
            assert!(self.wrong.contains(&stream), "{name}");
            assert_eq!(code, rule.code().0.to_be_bytes(), "{name}");
            // A stream that was not reported before is not reported at all.
            let is_known = |seen: &Seen| matches!(seen, Seen::Request(id, ..) if *id == stream);
            let is_reported = stream < 11 || seen.iter().any(is_known);
            let wrong = seen.iter().filter(|seen| matches!(seen, Seen::Wrong(..)));
            let expected = is_reported.then_some(Seen::Wrong(stream, rule));
            assert!(wrong.eq(expected.as_ref()), "{name}: {seen:?}");
            assert_eq!((last.kind, &payload[..]), (Kind::PING, &b"continue"[..]), "{name}");
        }
    }

    /// Each is the same at every split.
    pub fn assert_same_at_every_split(&self, cases: Vec<Case>) {
        for Case { rule, bytes, config } in cases {
            let all = [bytes, ping()].concat();
            let whole = (self.served)(config, &[&all]);
            // A flood has too many bytes to be split at all of them.
            let step = all.len().div_ceil(if all.len() < 10_000 { 300 } else { 20 });
            for cut in (0..all.len()).step_by(step) {
                let (now, later) = all.split_at(cut);
                assert_eq!((self.served)(config, &[now, later]), whole, "{rule:?} cut at {cut}");
            }
            if all.len() < 2000 {
                let bytes: Vec<_> = all.chunks(1).collect();
                assert_eq!((self.served)(config, &bytes), whole, "{rule:?}");
            }
        }
    }
}

/// A connection that continues answers this.
pub fn ping() -> Vec<u8> {
    frame(Kind::PING, 0, 0, b"continue")
}
