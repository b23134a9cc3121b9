//! A stop under load, on every model: the server announces it with GOAWAY, and answers all requests up to the
//! last one that it names. The others can be sent again, so no request is lost.

use crate::support::{DEADLINE, Server, on_every_shared};
use regatta_http2::{
    ErrorCode,
    client::{Client, Config, Event, Prepared, Request},
    hpack::{Encoder, Indexing},
};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

/// What became of the requests of a connection.
#[derive(Debug, Default)]
struct Sent {
    started: u32,
    answered: u32,
    not_processed: u32,
    goes_away: bool,
}

/// A client that keeps this many streams busy.
struct Connection {
    stream: TcpStream,
    client: Client,
    request: Prepared,
    sent: Sent,
}

const STREAMS: u32 = 32;

impl Connection {
    fn new(server: &Server, path: &str) -> Connection {
        let config = Config { max_streams: STREAMS, ..Config::CLIENT };
        let (mut client, mut out) = (Client::new(config).unwrap(), Vec::new());
        client.open(&mut out);
        let mut stream = server.connect();
        stream.write_all(&out).unwrap();
        let mut block = Vec::new();
        let fields =
            [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "a")];
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
        Encoder::default().encode(fields, &mut block);
        let request = Prepared::new(&block, b"", 16_384);
        Connection { stream, client, request, sent: Sent::default() }
    }

    /// Sends as many requests as possible. The server may have closed already.
    fn send(&mut self) {
        let mut out = Vec::new();
        while self.client.room(0) > 0 {
            let request = Request { place: 0, is_head: false, content: 0 };
            let id = self.client.start(request).unwrap();
            self.request.write(id, &mut out);
            self.sent.started += 1;
        }
        let _ = self.stream.write_all(&out);
    }

    /// Keeps all streams busy until the server closes. Calls `progress` with the number of answers.
    fn run(mut self, mut progress: impl FnMut(u32)) -> Sent {
        let (mut held, mut buffer, mut out) = (Vec::new(), [0; 4096], Vec::new());
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < deadline, "{:?}", self.sent);
            self.send();
            let read = match self.stream.read(&mut buffer) {
                // Requests that the client sent before it read GOAWAY may arrive after the close.
                Err(_) if self.sent.goes_away => 0,
                read => read.expect("no reset before GOAWAY"),
            };
            if read == 0 {
                assert_eq!(held, b"", "the last frame is complete");
                return self.sent;
            }
            held.extend_from_slice(&buffer[..read]);
            let mut rest = &held[..];
            while let Some(event) = self.client.next(&mut rest, &mut out).expect("a valid server") {
                match event {
                    Event::Settings(_) | Event::Window { .. } => {}
                    Event::Head { head, .. } => assert_eq!(head.status, 200),
                    Event::Content { ends, .. } => self.sent.answered += u32::from(ends),
                    Event::NotProcessed { .. } => self.sent.not_processed += 1,
                    Event::GoAway { code, .. } => {
                        assert_eq!(code, ErrorCode::NO_ERROR);
                        self.sent.goes_away = true;
                    }
                    other => panic!("{other:?}"),
                }
            }
            let left = rest.len();
            held.drain(..held.len() - left);
            let _ = self.stream.write_all(&std::mem::take(&mut out));
            progress(self.sent.answered);
        }
    }
}

fn drains(model: &str, service: &str, path: &str, (grace, after): (&str, u32)) {
    let mut server = Server::of(service, model, &["--http2", "--grace", grace]);
    let connection = Connection::new(&server, path);
    let mut is_stopped = false;
    let sent = connection.run(|answered| {
        if answered >= after && !std::mem::replace(&mut is_stopped, true) {
            server.signal("-TERM");
        }
    });
    assert!(sent.goes_away, "{model} {service}: {sent:?}");
    assert_eq!(sent.answered + sent.not_processed, sent.started, "{model} {service}: {sent:?}");
    assert_eq!(server.ended().code(), Some(0), "{model} {service}");
}

#[test]
fn no_request_is_lost_at_a_stop_of_any_model() {
    on_every_shared(|model| {
        drains(model, "hello", "/", ("20s", 200));
        drains(model, "hash", "/hash?n=1", ("20s", 200));
    });
}

/// Each reply is sent before the next one is computed, so the client always has more to ask. The server
/// announces the stop before the end of the input.
#[test]
fn the_grace_is_enough_for_a_client_that_goes_on_asking() {
    on_every_shared(|model| drains(model, "hash", "/hash?n=20", ("10s", 40)));
}

#[test]
fn a_connection_is_closed_whose_requests_do_not_arrive() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--http2", "--request-timeout", "300ms"]);
        // Part of the preface.
        let mut stream = server.connect();
        stream.write_all(b"PRI * HTTP").unwrap();
        assert_eq!(stream.read(&mut [0; 100]).unwrap_or(0), 0, "{model}");
        // A request without its content, and frames that do not complete it.
        let mut connection = Connection::new(&server, "/");
        let mut out = Vec::new();
        let block = connection.request.bytes()[9..].to_vec();
        regatta_http2::frame::write::headers(&mut out, |_| (), (1, false), &block, 16_384);
        connection.stream.write_all(&out).unwrap();
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let (start, mut buffer) = (Instant::now(), [0; 1000]);
        while !matches!(connection.stream.read(&mut buffer), Ok(0) | Err(_)) {
            assert!(start.elapsed() < DEADLINE, "{model}");
            let _ = connection.stream.write_all(&ping);
        }
        // The same without further frames, and a request whose fields are not complete.
        for flags in [4, 1] {
            let mut connection = Connection::new(&server, "/");
            let mut frame = out.clone();
            frame[4] = flags;
            connection.stream.write_all(&frame).unwrap();
            let (start, mut all) = (Instant::now(), Vec::new());
            let _ = connection.stream.read_to_end(&mut all);
            assert!(start.elapsed() < DEADLINE, "{model}");
            // A loop that serves one connection says so.
            let says_so = all.len() > 17 && all[all.len() - 17..][..4] == [0, 0, 8, 7];
            assert!(says_so || !matches!(model, "threads" | "green" | "async"), "{model}: {all:?}");
        }
    });
}
