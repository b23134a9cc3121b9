//! A server whose input is written by hand, and what it reports.

pub use crate::run::Seen;
use crate::run::{block, frame, frames, settings, text};
use regatta_http2::{
    frame::{Header, Kind, flag, write},
    server::{Config, Event, MAX_FRAME, Response, Server},
};

/// A server with the events that it has reported.
pub struct Run {
    pub server: Server,
    pub out: Vec<u8>,
    pub seen: Vec<Seen>,
    /// The content of the responses to complete requests. `None`: they are not answered.
    pub answer: Option<Vec<u8>>,
    held: Vec<u8>,
}

impl Run {
    /// A server that has received nothing.
    pub fn new(config: Config) -> Run {
        let server = Server::new(config).expect("a valid config");
        let (out, seen, held) = (Vec::new(), Vec::new(), Vec::new());
        Run { server, out, seen, answer: None, held }
    }

    /// A server whose client has sent its preface and these settings. The answers are removed.
    pub fn settled(config: Config, values: &[(u16, u32)]) -> Run {
        let mut run = Run::new(config);
        run.feed(write::PREFACE);
        run.feed(&settings(values));
        run.feed(&frame(Kind::SETTINGS, flag::ACK, 0, b""));
        assert!(run.server.is_settled());
        run.out.clear();
        run
    }

    /// Passes bytes to the server, as a caller with a buffer does.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = &held[..];
        loop {
            let seen = match self.server.next(&mut rest, &mut self.out) {
                Ok(None) => break,
                Ok(Some(event)) => seen(event),
                Err(rule) => Seen::Failed(rule),
            };
            let whole = match seen {
                Seen::Request(stream, _, true)
                | Seen::Content(stream, _, true)
                | Seen::Trailers(stream, _) => Some(stream),
                _ => None,
            };
            seen.join(&mut self.seen);
            if let Some((stream, content)) = whole.zip(self.answer.clone()) {
                self.respond(stream, &content);
            }
        }
        assert!(rest.len() <= MAX_FRAME, "{} bytes were not taken", rest.len());
        self.held = rest.to_vec();
    }

    /// Answers with status 200 and this content. Returns whether the stream was open.
    pub fn respond(&mut self, stream: u32, content: &[u8]) -> bool {
        let block = block(&[(":status", "200")]);
        self.server.respond(stream, Response { block: &block, content }, &mut self.out)
    }

    /// Takes the events so far.
    pub fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Takes the frames that the server has appended.
    pub fn frames(&mut self) -> Vec<(Header, Vec<u8>)> {
        frames(&std::mem::take(&mut self.out))
    }
}

fn seen(event: Event<'_>) -> Seen {
    match event {
        Event::Request { stream, request } => {
            let fields = request.fields();
            assert_eq!(Some(request.method()), fields.get(b":method"));
            assert_eq!(request.path(), fields.get(b":path").unwrap_or_default());
            Seen::Request(stream, text(fields), request.ends)
        }
        Event::Content { stream, bytes, ends } => {
            assert!(ends || !bytes.is_empty());
            Seen::Content(stream, bytes.to_vec(), ends)
        }
        Event::Trailers { stream, fields } => Seen::Trailers(stream, text(fields)),
        Event::Reset { stream, code } => Seen::Reset(stream, code),
        Event::Wrong { stream, rule } => Seen::Wrong(stream, rule),
    }
}

/// The fields of a request.
pub fn fields<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")]
}

/// A HEADERS frame of a request.
pub fn request(stream: u32, method: &str, ends: bool) -> Vec<u8> {
    crate::run::headers(stream, &fields(method, "/"), ends)
}
