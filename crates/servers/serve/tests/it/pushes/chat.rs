//! The test service: lines, pushes between sessions, ticks, and a second protocol on the same
//! connection.
//!
//! | a client sends | it gets | other members get |
//! |---|---|---|
//! | `ping` | `pong` | |
//! | `join`, `leave` | `joined`, `left` | |
//! | `say TEXT` | `said TEXT` | `heard TEXT` |
//! | `dismiss` | `done` | `dismissed`, and their connections are closed |
//! | `every MS` | `tick` every MS milliseconds | |
//! | `remind MS` | `tick` MS milliseconds after each push | |
//! | `linger MS` | after the end of its input: `tick` after MS milliseconds, then the end | |
//! | `farewell TEXT` | | after the end of its input: `heard TEXT` |
//! | `upgrade` | `upgraded`; it leaves, and frames follow | |
//! | `end` | `bye`, then the end | |
//!
//! A frame is a length (u32), a mask (4 bytes) and the payload XORed with the mask. The reply is
//! the length and the checksum of the payload. Numbers are big-endian. A payload is never buffered.
//!
//! A member that does not read what others say is sent `slow`, and its connection is closed.

use regatta_engine::{
    Bounds, Context, Flow, Never, Now, OutputState, Policy, PolicyCounts, Post, Push, PushOutcome,
    RoomName, Session, SessionFactory, Wire,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Maximum length of a line in bytes.
const LINE: usize = 64 * 1024;
/// Maximum bytes of pending output when something is said to a member, where its session gets all pushes.
const UNREAD: usize = 256 * 1024;
/// Maximum number of pushes queued for a member outside of its session.
const QUEUED: usize = 4096;
/// How long the connection of a slow member lasts, so that it can read its last line.
const LAST: Duration = Duration::from_secs(1);

/// Creates the sessions, and counts them.
#[derive(Clone, Default)]
pub struct Chat {
    pub counts: Arc<Counts>,
    queues: Arc<PolicyCounts>,
}

impl Chat {
    /// Returns the number of members that were closed because they did not read.
    pub fn slow(&self) -> usize {
        self.counts.slow.load(SeqCst) + self.queues.closed() as usize
    }
}

/// Counters of all sessions of a server.
#[derive(Default)]
pub struct Counts {
    pub sessions: AtomicUsize,
    /// Pushes that sessions have received.
    pub heard: AtomicUsize,
    /// Sessions with too much pending output.
    slow: AtomicUsize,
}

#[derive(Clone)]
pub enum Said {
    Text(Arc<[u8]>),
    Dismiss,
}

impl Push for Said {}

impl Wire for Said {
    fn write(&self, out: &mut Vec<u8>) {
        if let Said::Text(text) = self {
            out.push(b't');
            out.extend_from_slice(text);
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first() {
            None => Some(Said::Dismiss),
            Some((b't', text)) => Some(Said::Text(text.into())),
            Some(_) => None,
        }
    }
}

pub struct Talker {
    chat: Chat,
    line: Vec<u8>,
    inside: Option<Instant>,
    every: Option<Duration>,
    alarm: Option<Instant>,
    remind: Option<Duration>,
    linger: Option<Duration>,
    farewell: Option<Arc<[u8]>>,
    ended: bool,
    frames: Option<Frame>,
    /// Its output that the kernel has not accepted, at the last call, in bytes.
    pending: usize,
    cut_at: Option<Instant>,
}

/// The frame that is being received.
#[derive(Default)]
struct Frame {
    header: Vec<u8>,
    /// Bytes of its payload so far.
    at: u32,
    sum: u32,
}

impl SessionFactory for Chat {
    type Session = Talker;

    fn session(&self, _: Now) -> Talker {
        self.counts.sessions.fetch_add(1, SeqCst);
        Talker {
            chat: self.clone(),
            line: Vec::new(),
            inside: None,
            every: None,
            alarm: None,
            remind: None,
            linger: None,
            farewell: None,
            ended: false,
            frames: None,
            pending: 0,
            cut_at: None,
        }
    }

    fn bounds(&self, _: &RoomName) -> Bounds {
        let (policy, counts, memory) = (Policy::Close, Arc::clone(&self.queues), Arc::default());
        Bounds { bytes: usize::MAX, pushes: QUEUED, policy, counts, memory }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.chat.counts.sessions.fetch_sub(1, SeqCst);
    }
}

impl Session for Talker {
    type Job = Never;
    type Push = Said;
    type Local = ();

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, mut bytes: &mut [u8]) -> Flow {
        assert!(bytes.len() <= 16 * 1024, "nobody else is served meanwhile: {}", bytes.len());
        while !bytes.is_empty() {
            if let Some(frame) = &mut self.frames {
                frame.take(bytes, context.out);
                break;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                self.inside.get_or_insert(context.now.instant);
                return if self.line.len() > LINE { Flow::Close } else { Flow::Continue };
            };
            let (line, rest) = bytes.split_at_mut(end + 1);
            self.line.extend_from_slice(&line[..end]);
            self.inside = None;
            let line = std::mem::take(&mut self.line);
            if self.line(context, &line) != Flow::Continue {
                return Flow::Close;
            }
            bytes = rest;
        }
        Flow::Continue
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        assert!(!self.ended, "the end of the input is reported once");
        self.ended = true;
        if let Some(text) = self.farewell.take() {
            context.post(Post::Others(Said::Text(text)));
        }
        match self.linger {
            Some(after) => {
                self.alarm = Some(context.now.instant + after);
                Flow::Continue
            }
            None => Flow::Close,
        }
    }

    fn on_output(&mut self, output: OutputState) {
        self.pending = output.pending;
    }

    fn on_push(&mut self, now: Now, push: &Said, out: &mut Vec<u8>) -> PushOutcome {
        if self.pending > UNREAD {
            self.chat.counts.slow.fetch_add(1, SeqCst);
            self.on_overrun(out);
            self.cut_at = Some(now.instant + LAST);
            return PushOutcome::Close;
        }
        self.chat.counts.heard.fetch_add(1, SeqCst);
        if let Some(after) = self.remind {
            self.alarm = Some(now.instant + after);
        }
        match push {
            Said::Text(text) => {
                reply(out, b"heard ", text);
                PushOutcome::Queued
            }
            Said::Dismiss => {
                reply(out, b"dismissed", b"");
                PushOutcome::Close
            }
        }
    }

    fn on_overrun(&mut self, out: &mut Vec<u8>) {
        reply(out, b"slow", b"");
    }

    fn cut_at(&self) -> Option<Instant> {
        self.cut_at
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        let now = context.now.instant;
        assert!(self.alarm.is_some_and(|alarm| alarm <= now), "the alarm is early");
        reply(context.out, b"tick", b"");
        if self.ended {
            return Flow::Close;
        }
        self.alarm = self.every.map(|every| now + every);
        Flow::Continue
    }

    fn inside(&self) -> Option<Instant> {
        self.inside
    }

    fn alarm(&self) -> Option<Instant> {
        self.alarm
    }
}

impl Talker {
    fn line(&mut self, context: &mut Context<'_, Self>, line: &[u8]) -> Flow {
        let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (word, text) = line.split_at(space);
        let text = text.get(1..).unwrap_or(&[]);
        let ms = || Duration::from_millis(std::str::from_utf8(text).unwrap().parse().unwrap());
        match word {
            b"ping" => reply(context.out, b"pong", b""),
            b"join" => {
                context.post(Post::Join(RoomName::LOBBY));
                reply(context.out, b"joined", b"");
            }
            b"leave" => {
                context.post(Post::Leave);
                reply(context.out, b"left", b"");
            }
            b"say" => {
                context.post(Post::Others(Said::Text(text.into())));
                reply(context.out, b"said ", text);
            }
            b"dismiss" => {
                context.post(Post::Others(Said::Dismiss));
                reply(context.out, b"done", b"");
            }
            b"every" => {
                self.every = Some(ms());
                self.alarm = Some(context.now.instant + ms());
            }
            b"remind" => self.remind = Some(ms()),
            b"linger" => self.linger = Some(ms()),
            b"farewell" => self.farewell = Some(text.into()),
            b"upgrade" => {
                context.post(Post::Leave);
                reply(context.out, b"upgraded", b"");
                self.frames = Some(Frame::default());
            }
            b"end" => {
                reply(context.out, b"bye", b"");
                return Flow::Close;
            }
            _ => return Flow::Close,
        }
        Flow::Continue
    }
}

fn reply(out: &mut Vec<u8>, word: &[u8], text: &[u8]) {
    out.extend_from_slice(word);
    out.extend_from_slice(text);
    out.push(b'\n');
}

impl Frame {
    fn take(&mut self, mut bytes: &mut [u8], out: &mut Vec<u8>) {
        loop {
            let missing = (8 - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..missing]);
            bytes = &mut bytes[missing..];
            let Ok(header) = <[u8; 8]>::try_from(&self.header[..]) else { return };
            let length = u32::from_be_bytes(header[..4].try_into().unwrap());
            let payload = bytes.len().min((length - self.at) as usize);
            let (payload, rest) = bytes.split_at_mut(payload);
            for byte in &mut *payload {
                *byte ^= header[4 + self.at as usize % 4];
                self.at += 1;
            }
            self.sum = checksum(self.sum, payload);
            bytes = rest;
            if self.at < length {
                return;
            }
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&self.sum.to_be_bytes());
            *self = Frame::default();
            if bytes.is_empty() {
                return;
            }
        }
    }
}

/// Returns the checksum of `bytes`, continued from `before`.
pub fn checksum(before: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(before, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)))
}
