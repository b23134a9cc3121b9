//! A contender that speaks HTTP/2 with prior knowledge, for the tests of races: `streams PORT HOW`, where HOW is one of:
//!
//! - `honest`: answers `/` with the time, as `hello`, and `/N` with `item N`.
//! - `few N`: permits N streams on each connection.
//! - `leaves N`: announces the close of each connection (GOAWAY) with the Nth request.
//! - `swaps`: of 40 requests on a connection, answers two with the content of each other.
//! - `drops`: of 40 requests on a connection, does not end the stream of one.
//!
//! It has a thread for each connection.

use regatta_http2::{
    ErrorCode,
    frame::{Header, Kind, flag, write},
    hpack::{Decoder, Encoder, Fields, Indexing},
};
use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

/// SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113, 6.5.2).
const STREAMS: u16 = 3;
/// One request of this many is answered wrongly.
const EVERY: u32 = 40;
const FRAME: u32 = 1 << 14;

#[derive(Clone, Copy)]
enum How {
    Honest,
    Few(u32),
    Leaves(u32),
    Swaps,
    Drops,
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().expect("a number");
    let (port, how) = match words[..] {
        [port, "honest"] => (port, How::Honest),
        [port, "few", n] => (port, How::Few(number(n))),
        [port, "leaves", n] => (port, How::Leaves(number(n))),
        [port, "swaps"] => (port, How::Swaps),
        [port, "drops"] => (port, How::Drops),
        _ => panic!("usage: streams PORT HOW; see its source"),
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        thread::spawn(move || Connection::new(how).serve(stream));
    }
}

struct Connection {
    how: How,
    decoder: Decoder,
    out: Vec<u8>,
    /// Number of requests so far.
    requests: u32,
    /// A request that waits for the next one.
    held: Option<(u32, String)>,
}

impl Connection {
    fn new(how: How) -> Self {
        let mut out = Vec::new();
        match how {
            How::Few(n) => write::settings(&mut out, &[(STREAMS, n)]),
            _ => write::settings(&mut out, &[]),
        }
        Connection { how, decoder: Decoder::new(1 << 16), out, requests: 0, held: None }
    }

    /// Serves until the client closes the connection.
    fn serve(mut self, mut stream: TcpStream) {
        let (mut input, mut piece) = (Vec::new(), [0; 4096]);
        let mut preface = [0; 24];
        let mut is_open = stream.read_exact(&mut preface).is_ok();
        while is_open {
            is_open = stream.write_all(&self.out).is_ok();
            self.out.clear();
            match stream.read(&mut piece) {
                Ok(n @ 1..) => input.extend_from_slice(&piece[..n]),
                _ => return,
            }
            while let Some(header) = input.first_chunk().map(Header::read) {
                let whole = Header::SIZE + header.length as usize;
                if input.len() < whole {
                    break;
                }
                let payload: Vec<u8> = input.drain(..whole).skip(Header::SIZE).collect();
                self.frame(header, &payload);
            }
        }
    }

    fn frame(&mut self, header: Header, payload: &[u8]) {
        match header.kind {
            Kind::SETTINGS if !header.has(flag::ACK) => write::settings_ack(&mut self.out),
            // The requests of these tests have no content, and short heads.
            Kind::HEADERS => {
                let mut fields = Fields::default();
                self.decoder.decode(payload, &mut fields).expect("a valid field block");
                let path = fields.get(b":path").expect("a path");
                let content = content(&String::from_utf8_lossy(path));
                self.request(header.stream, content);
            }
            _ => {}
        }
    }

    fn request(&mut self, stream: u32, content: String) {
        self.requests += 1;
        let is_due = self.requests.is_multiple_of(EVERY);
        match self.how {
            How::Leaves(n) if self.requests > n => {}
            How::Leaves(n) if self.requests == n => {
                write::go_away(&mut self.out, stream, ErrorCode::NO_ERROR);
                self.answer(stream, &content, true);
            }
            How::Swaps if is_due => self.held = Some((stream, content)),
            How::Drops if is_due => self.answer(stream, &content, false),
            _ => match self.held.take() {
                Some((other, of_other)) => {
                    self.answer(stream, &of_other, true);
                    self.answer(other, &content, true);
                }
                None => self.answer(stream, &content, true),
            },
        }
    }

    fn answer(&mut self, stream: u32, content: &str, ends: bool) {
        let fields = [(":status", "200"), ("content-type", "text/plain")];
        let fields =
            fields.map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
        let mut block = Vec::new();
        Encoder::default().encode(fields, &mut block);
        write::headers(&mut self.out, |_| (), (stream, false), &block, FRAME);
        write::data(&mut self.out, |_| (), (stream, ends), content.as_bytes(), FRAME);
    }
}

fn content(path: &str) -> String {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    match path {
        "/" => format!("Hello. The time is {}", now()),
        path => format!("item {}", &path[1..]),
    }
}
