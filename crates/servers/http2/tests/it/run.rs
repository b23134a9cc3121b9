//! A client whose input is written by hand, and what it reports.

use regatta_http2::{
    ErrorCode, Rule,
    client::{Client, Config, Event, MAX_FRAME, Request, Stream},
    frame::{Header, Kind, flag},
    hpack::{Encoder, Fields, Indexing},
};

/// An event of either end, without borrows. Pieces of content that follow each other are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The stream, the fields, and whether the request is complete.
    Request(u32, String, bool),
    Settings,
    Interim(u32, u16),
    Head(u32, String, bool),
    Content(u32, Vec<u8>, bool),
    Trailers(u32, String),
    Reset(u32, ErrorCode),
    Wrong(u32, Rule),
    NotProcessed(u32),
    GoAway(u32, ErrorCode, Vec<u8>),
    Window(Option<u32>),
    Failed(Rule),
}

/// What an end reports and sends.
pub type Outcome = (Vec<Seen>, Vec<u8>);

impl Seen {
    /// Appends it to the events before.
    pub fn join(self, all: &mut Vec<Seen>) {
        match (all.last_mut(), self) {
            (Some(Seen::Content(before, all, ended)), Seen::Content(stream, bytes, ends))
                if *before == stream && !*ended =>
            {
                all.extend_from_slice(&bytes);
                *ended = ends;
            }
            (_, seen) => all.push(seen),
        }
    }
}

/// A client with the events that it has reported.
pub struct Run {
    pub client: Client,
    pub out: Vec<u8>,
    pub seen: Vec<Seen>,
    held: Vec<u8>,
}

/// The place of a stream in all tests.
fn known(stream: Stream) -> u32 {
    assert_eq!(stream.place, stream.id + 1000);
    stream.id
}

impl Run {
    /// A client that has sent its preface, which is removed.
    pub fn new(config: Config) -> Run {
        let mut client = Client::new(config).expect("a valid config");
        client.open(&mut Vec::new());
        Run { client, out: Vec::new(), seen: Vec::new(), held: Vec::new() }
    }

    /// Starts a request with content of this length. Returns its stream.
    pub fn start(&mut self, is_head: bool, content: u64) -> u32 {
        let next = self.client.pending().map(|stream| stream.id).max();
        let place = next.map_or(1, |last| last + 2) + 1000;
        let stream = self.client.start(Request { place, is_head, content }).expect("room");
        assert_eq!(stream + 1000, place, "a test starts its requests before any is answered");
        stream
    }

    /// Passes bytes to the client, as a caller with a buffer does.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let mut rest = &self.held[..];
        loop {
            let seen = match self.client.next(&mut rest, &mut self.out) {
                Ok(None) => break,
                Ok(Some(event)) => seen(event),
                Err(rule) => Seen::Failed(rule),
            };
            seen.join(&mut self.seen);
        }
        let left = rest.len();
        assert!(left <= MAX_FRAME, "{left} bytes were not taken");
        self.held.drain(..self.held.len() - left);
    }

    /// Takes the events so far.
    pub fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Takes the frames that the client has appended.
    pub fn frames(&mut self) -> Vec<(Header, Vec<u8>)> {
        frames(&std::mem::take(&mut self.out))
    }
}

fn seen(event: Event<'_>) -> Seen {
    match event {
        Event::Settings(_) => Seen::Settings,
        Event::Interim { stream, status, .. } => Seen::Interim(known(stream), status),
        Event::Head { stream, head } => {
            assert_eq!(head.fields.get(b":status").unwrap(), head.status.to_string().as_bytes());
            Seen::Head(known(stream), text(head.fields), head.ends)
        }
        Event::Content { stream, bytes, ends } => {
            assert!(ends || !bytes.is_empty());
            Seen::Content(known(stream), bytes.to_vec(), ends)
        }
        Event::Trailers { stream, fields } => Seen::Trailers(known(stream), text(fields)),
        Event::Reset { stream, code } => Seen::Reset(known(stream), code),
        Event::Wrong { stream, rule } => Seen::Wrong(known(stream), rule),
        Event::NotProcessed { stream } => Seen::NotProcessed(known(stream)),
        Event::GoAway { last_stream, code, debug } => {
            Seen::GoAway(last_stream, code, debug.to_vec())
        }
        Event::Window { stream } => Seen::Window(stream.map(known)),
    }
}

/// Fields as one line.
pub fn text(fields: &Fields) -> String {
    let line = |field: regatta_http2::hpack::Field<'_>| {
        format!("{}={}", field.name.escape_ascii(), field.value.escape_ascii())
    };
    fields.iter().map(line).collect::<Vec<_>>().join(" ")
}

/// Splits bytes into frames.
pub fn frames(mut bytes: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let header = Header::read(header);
        let (payload, rest) = rest.split_at(header.length as usize);
        all.push((header, payload.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty());
    all
}

/// A frame.
pub fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header { length: payload.len() as u32, kind, flags, stream }.write(&mut out);
    out.extend_from_slice(payload);
    out
}

/// A SETTINGS frame.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let value = |(number, value): &(u16, u32)| {
        [&number.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()
    };
    frame(Kind::SETTINGS, 0, 0, &values.iter().flat_map(value).collect::<Vec<_>>())
}

/// A field block without insertions.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let fields =
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
    Encoder::default().plain().encode(fields, &mut out);
    out
}

/// A HEADERS frame with a complete field block.
pub fn headers(stream: u32, fields: &[(&str, &str)], ends: bool) -> Vec<u8> {
    let ends = if ends { flag::END_STREAM } else { 0 };
    frame(Kind::HEADERS, flag::END_HEADERS | ends, stream, &block(fields))
}

/// A DATA frame without padding.
pub fn data(stream: u32, content: &[u8], ends: bool) -> Vec<u8> {
    frame(Kind::DATA, if ends { flag::END_STREAM } else { 0 }, stream, content)
}

/// A WINDOW_UPDATE frame.
pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(Kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// A RST_STREAM frame.
pub fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(Kind::RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

/// A GOAWAY frame.
pub fn go_away(last: u32, code: ErrorCode, debug: &[u8]) -> Vec<u8> {
    let payload = [&last.to_be_bytes()[..], &code.0.to_be_bytes()[..], debug].concat();
    frame(Kind::GOAWAY, 0, 0, &payload)
}
