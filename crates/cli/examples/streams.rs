//! A contender that speaks HTTP/2 with prior knowledge, for the tests of races: `streams PORT HOW`, where HOW is one of:
//!
//! - `honest`: answers `/` with the time, as `hello`, and `/N` with `item N`.
//! - `few N`: permits N streams on each connection.
//! - `leaves N`: announces the close of each connection (GOAWAY) with the Nth request.
//! - `swaps`: of 40 requests on a connection, answers two with the content of each other.
//! - `drops`: of 40 requests on a connection, does not end the stream of one.
//! - `greets`: answers calls of gRPC, as SayHello of `peers/helloworld.proto`.
//! - `greets-all NAME`: answers every call as if it were for this name.
//! - `greets-early NAME`: does so before the message of the call has arrived.
//! - `counts`: answers every call of gRPC with five messages: the number in field 1, and `Hello NUMBER` in field 2.
//! - `counts-swapped`: does so, and of 40 calls on a connection swaps the messages 2 and 3 of one.
//!
//! It has a thread for each connection. With the port 0 it takes a free one, and prints its address.

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

#[derive(Clone)]
enum How {
    Honest,
    Few(u32),
    Leaves(u32),
    Swaps,
    Drops,
    Greets,
    GreetsAll(String),
    GreetsEarly(String),
    Counts { swaps: bool },
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
        [port, "greets"] => (port, How::Greets),
        [port, "greets-all", name] => (port, How::GreetsAll(name.to_owned())),
        [port, "greets-early", name] => (port, How::GreetsEarly(name.to_owned())),
        [port, "counts"] => (port, How::Counts { swaps: false }),
        [port, "counts-swapped"] => (port, How::Counts { swaps: true }),
        _ => panic!("usage: streams PORT HOW; see its source"),
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    println!("listening on {}", listener.local_addr().expect("an address"));
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        let how = how.clone();
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
            // The requests of these tests have short heads.
            Kind::HEADERS => {
                let mut fields = Fields::default();
                self.decoder.decode(payload, &mut fields).expect("a valid field block");
                let path = fields.get(b":path").expect("a path");
                let content = content(&String::from_utf8_lossy(path));
                match &self.how {
                    How::GreetsEarly(name) => self.greet(header.stream, &name.clone()),
                    How::Greets | How::GreetsAll(_) | How::Counts { .. } => {}
                    _ => self.request(header.stream, content),
                }
            }
            // Only calls have content: one short message.
            Kind::DATA => {
                // Without it a client has to stop after 65,535 bytes (RFC 9113, 6.9.2).
                if header.length > 0 {
                    write::window_update(&mut self.out, 0, header.length);
                }
                match &self.how {
                    How::Greets => self.greet(header.stream, name_in(payload)),
                    How::GreetsAll(name) => self.greet(header.stream, &name.clone()),
                    How::Counts { swaps } => self.count(header.stream, *swaps),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Answers a call with a stream.
    fn count(&mut self, stream: u32, swaps: bool) {
        self.requests += 1;
        let numbers = match swaps && self.requests.is_multiple_of(EVERY) {
            true => *b"13245",
            false => *b"12345",
        };
        let framed = |digit: u8| {
            let message = [&[0x08, digit - b'0', 0x12, 7][..], b"Hello ", &[digit]].concat();
            [&[0, 0, 0, 0, message.len() as u8][..], &message].concat()
        };
        let content: Vec<u8> = numbers.into_iter().flat_map(framed).collect();
        self.respond(stream, &content);
    }

    /// Answers a call.
    fn greet(&mut self, stream: u32, name: &str) {
        let text = format!("Hello {name}");
        // The prefix of the message, then its field 1.
        let length = text.len() as u8;
        let content = [&[0, 0, 0, 0, length + 2, 0x0a, length][..], text.as_bytes()].concat();
        self.respond(stream, &content);
    }

    /// Sends a response with this content to a call.
    fn respond(&mut self, stream: u32, content: &[u8]) {
        let head = [(":status", "200"), ("content-type", "application/grpc")];
        write::headers(&mut self.out, |_| (), (stream, false), &block(&head), FRAME);
        write::data(&mut self.out, |_| (), (stream, false), content, FRAME);
        write::headers(
            &mut self.out,
            |_| (),
            (stream, true),
            &block(&[("grpc-status", "0")]),
            FRAME,
        );
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
        let head = [(":status", "200"), ("content-type", "text/plain")];
        write::headers(&mut self.out, |_| (), (stream, false), &block(&head), FRAME);
        write::data(&mut self.out, |_| (), (stream, ends), content.as_bytes(), FRAME);
    }
}

/// Fields that do not depend on the connection.
fn block(fields: &[(&'static str, &'static str)]) -> Vec<u8> {
    let literal = |(name, value): &(&'static str, &'static str)| {
        (name.as_bytes(), value.as_bytes(), Indexing::Without)
    };
    let mut block = Vec::new();
    Encoder::default().encode(fields.iter().map(literal), &mut block);
    block
}

/// The name in a HelloRequest with its prefix: field 1, of less than 128 bytes.
fn name_in(content: &[u8]) -> &str {
    std::str::from_utf8(&content[7..]).expect("a name")
}

fn content(path: &str) -> String {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    match path {
        "/" => format!("Hello. The time is {}", now()),
        path => format!("item {}", &path[1..]),
    }
}
