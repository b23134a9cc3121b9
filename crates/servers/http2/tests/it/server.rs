//! The `h2` crate as server, over a pipe in memory: 1,000 requests on 32 streams, with content in both
//! directions, small windows that change, and a graceful shutdown.

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use http::{HeaderMap, Request, Response};
use regatta_http2::{
    ErrorCode,
    client::{self, Client, Config, Event, Stream},
    frame::write,
    hpack::{Encoder, Indexing},
};
use std::{collections::HashMap, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const REQUESTS: usize = 1000;
const STREAMS: usize = 32;

/// Content that is different for each request. Every fifth is empty.
fn content(nth: usize) -> Vec<u8> {
    let length = if nth.is_multiple_of(5) { 0 } else { nth * 37 % 5000 + 1 };
    (0..length).map(|at| (at * 31 + nth * 7) as u8).collect()
}

/// Serves requests: returns the content reversed, in pieces, with its number in a field, and with trailers.
async fn serve(pipe: DuplexStream, table: u32) -> usize {
    let mut builder = Builder::new();
    builder.initial_window_size(3000).max_concurrent_streams(STREAMS as u32);
    builder.header_table_size(table).max_frame_size(17_000);
    let mut server = builder.handshake::<_, Bytes>(pipe).await.expect("a handshake");
    let mut served = 0;
    while let Some(request) = server.accept().await {
        let (request, reply) = request.expect("a valid request");
        served += 1;
        if served % 200 == 0 {
            // Settings that change while streams are open.
            let size = if served % 400 == 0 { 3000 } else { 1 << 16 };
            server.set_initial_window_size(size).expect("a valid size");
        }
        if served == REQUESTS {
            server.graceful_shutdown();
        }
        tokio::spawn(answer(request, reply));
    }
    served
}

async fn answer(request: Request<h2::RecvStream>, mut reply: SendResponse<Bytes>) {
    assert_eq!(request.uri().authority().map(|name| name.as_str()), Some("a.test"));
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.expect("content");
        all.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len()).expect("capacity");
    }
    all.reverse();
    // Larger numbers answer later, in blocks of 7, so that replies are out of order.
    let nth: u64 = path.trim_start_matches('/').parse().expect("a number");
    for _ in 0..(7 - nth % 7) {
        tokio::task::yield_now().await;
    }
    let mut response = Response::builder().status(200).header("x-path", &path);
    if nth.is_multiple_of(2) {
        response = response.header("content-length", all.len());
    }
    let response = response.header("date", "today").body(()).expect("a response");
    if all.is_empty() {
        reply.send_response(response, true).expect("sent");
        return;
    }
    let mut stream = reply.send_response(response, false).expect("sent");
    let has_trailers = nth.is_multiple_of(3);
    let pieces: Vec<&[u8]> = all.chunks(700).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let ends = at + 1 == pieces.len() && !has_trailers;
        stream.send_data(Bytes::copy_from_slice(piece), ends).expect("sent");
    }
    if has_trailers {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", all.len().into());
        stream.send_trailers(trailers).expect("sent");
    }
}

/// The client's side of the test.
struct Load {
    client: Client,
    encoder: Encoder,
    out: Vec<u8>,
    next: usize,
    /// By stream: the content of the request, and how much of it was sent.
    unsent: HashMap<u32, (Vec<u8>, usize)>,
    /// By request: the content that arrived.
    received: HashMap<usize, Vec<u8>>,
    done: Vec<bool>,
    goes_away: bool,
}

impl Load {
    fn new() -> Load {
        let config = Config {
            max_streams: STREAMS as u32,
            stream_window: 1500,
            connection_window: 65_535,
            header_table: 300,
            header_list: 4096,
        };
        let mut client = Client::new(config).expect("a valid config");
        let mut out = Vec::new();
        client.open(&mut out);
        Load {
            client,
            encoder: Encoder::default(),
            out,
            next: 0,
            unsent: HashMap::new(),
            received: HashMap::new(),
            done: vec![false; REQUESTS],
            goes_away: false,
        }
    }

    /// Starts as many requests as possible, and sends as much content as possible.
    fn send(&mut self) {
        while self.next < REQUESTS && self.client.room(0) > 0 {
            let nth = self.next;
            self.next += 1;
            let content = content(nth);
            let request = client::Request {
                place: nth as u32,
                is_head: false,
                content: content.len() as u64,
            };
            let id = self.client.start(request).expect("room");
            let path = format!("/{nth}");
            let (mut block, without) = (Vec::new(), Indexing::Without);
            let fields: [(&[u8], &[u8], Indexing); 5] = [
                (b":method", b"POST", without),
                (b":scheme", b"http", without),
                (b":path", path.as_bytes(), without),
                (b":authority", b"a.test", Indexing::Incremental),
                (b"authorization", b"secret", Indexing::Never),
            ];
            self.encoder.encode(fields, &mut block);
            // Some blocks are longer than a frame.
            let max_frame = if nth.is_multiple_of(10) { 3 } else { 16_384 };
            write::headers(&mut self.out, |_| (), (id, content.is_empty()), &block, max_frame);
            self.unsent.insert(id, (content, 0));
        }
        let Load { client, unsent, out, .. } = self;
        unsent.retain(|id, (content, sent)| {
            *sent += client.send(*id, &content[*sent..], out);
            *sent < content.len()
        });
    }

    /// Handles all events in `input`. Returns the number of bytes that were taken.
    fn receive(&mut self, input: &[u8]) -> usize {
        let mut rest = input;
        loop {
            let event = self.client.next(&mut rest, &mut self.out);
            let Some(event) = event.expect("a valid server") else { break };
            match event {
                Event::Settings(settings) => {
                    self.encoder.resize(settings.header_table_size.min(4096) as usize);
                }
                Event::Head { stream, head } => {
                    let path = format!("/{}", stream.place);
                    assert_eq!(head.status, 200);
                    assert_eq!(head.fields.get(b"x-path"), Some(path.as_bytes()));
                    assert_eq!(head.fields.get(b"date"), Some(&b"today"[..]));
                    self.received.insert(stream.place as usize, Vec::new());
                    if head.ends {
                        self.check(stream, false);
                    }
                }
                Event::Content { stream, bytes, ends } => {
                    let all = self.received.get_mut(&(stream.place as usize)).expect("a head");
                    all.extend_from_slice(bytes);
                    if ends {
                        self.check(stream, false);
                    }
                }
                Event::Trailers { stream, fields } => {
                    let sum = content(stream.place as usize).len().to_string();
                    assert_eq!(fields.get(b"x-sum"), Some(sum.as_bytes()));
                    self.check(stream, true);
                }
                Event::GoAway { code, .. } => {
                    assert_eq!(code, ErrorCode::NO_ERROR);
                    self.goes_away = true;
                }
                Event::Window { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        input.len() - rest.len()
    }

    fn check(&mut self, stream: Stream, has_trailers: bool) {
        let nth = stream.place as usize;
        let mut expected = content(nth);
        expected.reverse();
        assert_eq!(has_trailers, nth.is_multiple_of(3) && !expected.is_empty());
        assert_eq!(self.received.remove(&nth), Some(expected), "request {nth}");
        assert!(!std::mem::replace(&mut self.done[nth], true), "request {nth} is answered twice");
    }
}

/// Runs all requests; the input is read in pieces of at most this length.
async fn run(table: u32, piece: usize) -> Load {
    let (mut ours, theirs) = duplex(8 * 1024);
    let server = tokio::spawn(serve(theirs, table));
    let (mut load, mut held, mut buffer) = (Load::new(), Vec::new(), vec![0; piece]);
    let (mut reader, mut writer) = tokio::io::split(&mut ours);
    loop {
        load.send();
        // A server may stop reading until its output is read, so neither side waits for the other.
        tokio::select! {
            written = writer.write(&load.out), if !load.out.is_empty() => match written {
                Ok(written) => {
                    load.out.drain(..written);
                }
                // The server closes after its last response.
                Err(error) => {
                    assert_eq!(load.next, REQUESTS, "{error}");
                    load.out.clear();
                }
            },
            read = reader.read(&mut buffer) => {
                let read = read.expect("the pipe is open");
                if read == 0 {
                    break;
                }
                held.extend_from_slice(&buffer[..read]);
                let taken = load.receive(&held);
                held.drain(..taken);
            }
        }
    }
    assert!(held.is_empty() && !load.done.contains(&false), "{:?}", load.done);
    assert_eq!(server.await.expect("the server ends"), REQUESTS);
    load
}

fn run_within_a_minute(table: u32, piece: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let run = async { tokio::time::timeout(Duration::from_secs(60), run(table, piece)).await };
    let load = runtime.block_on(run).expect("all requests are answered within a minute");
    assert_eq!(load.client.open_streams(), 0);
    assert!(load.client.is_settled() && load.goes_away);
    assert!(load.client.header_table().count() > 0, "the server uses the table");
}

#[test]
fn a_thousand_requests_with_content_are_answered_on_32_streams() {
    run_within_a_minute(4096, 16 * 1024);
}

#[test]
fn a_thousand_requests_in_tiny_pieces_and_without_a_table_for_requests() {
    run_within_a_minute(0, 7);
}
