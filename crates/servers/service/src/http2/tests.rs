//! Requests whose content arrives in parts, limits, and that nothing is allocated for a request.

use super::Site;
use crate::{
    CallOutcome, Codec, Decoded, Flow, Now, Service, hello::Hello, http::Local, http2::Frames,
};
use regatta_http2::{
    frame::{Header, Kind, write},
    hpack::{Encoder, Indexing},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

const LIMIT: Duration = Duration::from_secs(10);

/// A connection to `hello`.
struct Connection {
    site: Site<Hello>,
    codec: Frames,
    local: <Site<Hello> as Service>::Local,
    now: Now,
    out: Vec<u8>,
}

impl Connection {
    /// A connection that is settled. Its answers are removed.
    fn new() -> Connection {
        let now = Now { instant: Instant::now(), unix_s: 784_111_777 };
        let (site, codec, local) = (Site::new(Hello, LIMIT), Frames::default(), Local::default());
        let mut connection = Connection { site, codec, local, now, out: Vec::new() };
        let mut start = write::PREFACE.to_vec();
        write::settings(&mut start, &[]);
        write::settings_ack(&mut start);
        connection.feed(&start);
        connection.out.clear();
        connection
    }

    /// Passes frames. Returns what happens to the connection.
    fn feed(&mut self, mut input: &[u8]) -> Flow {
        while let Decoded::Request(frame, taken) = self.codec.decode(input) {
            input = &input[taken..];
            let outcome = self.site.call(&mut self.local, self.now, frame, &mut self.out);
            match outcome {
                CallOutcome::Replied(Flow::Continue) => {}
                CallOutcome::Replied(flow) => return flow,
                CallOutcome::Needs(_) => unreachable!("hello needs no jobs"),
            }
        }
        assert!(input.is_empty());
        Flow::Continue
    }

    /// Takes the kinds and streams of the frames that were sent, and the first byte of each payload.
    fn sent(&mut self) -> Vec<(Kind, u32, u8)> {
        let (out, mut all) = (std::mem::take(&mut self.out), Vec::new());
        let mut rest = &out[..];
        while let Some((header, payload)) = rest.split_first_chunk() {
            let header = Header::read(header);
            all.push((header.kind, header.stream, payload.first().copied().unwrap_or(0)));
            rest = &payload[header.length as usize..];
        }
        all
    }
}

/// A request for this path; `is_whole`: without content.
fn request(stream: u32, method: &str, path: &str, is_whole: bool) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    with_fields(stream, &fields, is_whole)
}

fn with_fields(stream: u32, fields: &[(&str, &str)], is_whole: bool) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    let fields =
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
    Encoder::default().encode(fields, &mut block);
    write::headers(&mut out, |_| (), (stream, is_whole), &block, 16_384);
    out
}

fn content(stream: u32, bytes: usize, ends: bool) -> Vec<u8> {
    let mut out = Vec::new();
    write::data(&mut out, |_| (), (stream, ends), &vec![b'x'; bytes], 16_384);
    out
}

/// The first byte of a head: `:status: 200`, and a literal.
const OK: u8 = 0x88;
const LITERAL: u8 = 0x08;

#[test]
fn a_request_is_answered_when_its_content_is_complete() {
    let mut connection = Connection::new();
    connection.feed(&request(1, "GET", "/", false));
    connection.feed(&request(3, "GET", "/", true));
    connection.feed(&content(1, 5, false));
    let ok = |stream| [(Kind::HEADERS, stream, OK), (Kind::DATA, stream, b'H')];
    assert_eq!(connection.sent(), ok(3));
    connection.feed(&content(1, 0, true));
    assert_eq!(connection.sent(), ok(1));
}

#[test]
fn too_much_content_is_answered_before_its_end() {
    let mut connection = Connection::new();
    connection.feed(&request(1, "POST", "/", false));
    connection.feed(&content(1, 60_000, false));
    // The window is raised for what was taken.
    assert!(connection.sent().iter().all(|(kind, ..)| *kind == Kind::WINDOW_UPDATE));
    connection.feed(&content(1, 6000, true));
    let mut kinds = connection.sent();
    kinds.retain(|(kind, ..)| *kind != Kind::WINDOW_UPDATE);
    let whole = [(Kind::HEADERS, 1, LITERAL), (Kind::DATA, 1, b'T')];
    assert_eq!(kinds[..2], whole);
    // The client may reset a request that it has not sent completely.
    connection.feed(&request(3, "POST", "/", false));
    let mut reset = Vec::new();
    write::reset(&mut reset, 3, regatta_http2::ErrorCode::CANCEL);
    connection.feed(&reset);
    assert_eq!(connection.sent(), []);
}

#[test]
fn the_targets_of_incomplete_requests_are_bounded() {
    let mut connection = Connection::new();
    let path = format!("/{}", "x".repeat(8000));
    for nth in 0..9 {
        connection.feed(&request(1 + 2 * nth, "POST", &path, false));
    }
    let refused: Vec<_> = connection.sent().into_iter().map(|(kind, id, _)| (kind, id)).collect();
    assert_eq!(refused, [(Kind::RST_STREAM, 17)]);
}

#[test]
fn a_connection_with_a_late_request_is_closed() {
    let mut connection = Connection::new();
    connection.feed(&request(1, "POST", "/", false));
    connection.now.instant += LIMIT;
    assert_eq!(connection.feed(&request(3, "GET", "/", true)), Flow::Continue);
    connection.now.instant += Duration::from_nanos(1);
    assert_eq!(connection.feed(&request(5, "GET", "/", true)), Flow::Close);
    assert_eq!(connection.sent().last().map(|(kind, ..)| *kind), Some(Kind::GOAWAY));
}

#[test]
fn a_connection_whose_fields_dribble_is_closed() {
    let mut connection = Connection::new();
    let mut start = request(1, "GET", "/", true);
    start[4] &= !4; // END_HEADERS
    connection.feed(&start);
    assert_eq!(connection.site.inside(), Some(connection.now.instant));
    let start = connection.now.instant;
    let more = [0, 0, 1, 9, 0, 0, 0, 0, 1, 0x82];
    connection.now.instant += LIMIT;
    assert_eq!(connection.feed(&more), Flow::Continue);
    assert_eq!(connection.site.inside(), Some(start));
    connection.now.instant += Duration::from_nanos(1);
    assert_eq!(connection.feed(&more), Flow::Close);
    assert_eq!(connection.sent().pop().map(|(kind, ..)| kind), Some(Kind::GOAWAY));
}

#[test]
fn a_request_is_inside_until_its_end() {
    let mut connection = Connection::new();
    let start = connection.now.instant;
    assert_eq!(connection.site.inside(), None);
    connection.feed(&request(1, "POST", "/", false));
    connection.now.instant += LIMIT / 2;
    connection.feed(&request(3, "POST", "/", false));
    assert_eq!(connection.site.inside(), Some(start));
    connection.feed(&content(1, 1, true));
    assert_eq!(connection.site.inside(), Some(start + LIMIT / 2));
    connection.feed(&content(3, 1, true));
    assert_eq!(connection.site.inside(), None);
}

#[test]
fn a_late_request_is_refused_and_a_response_that_waits_is_cut_off() {
    let mut connection = Connection::new();
    let mut window = Vec::new();
    write::settings(&mut window, &[(4, 1)]);
    connection.feed(&window);
    connection.feed(&request(1, "GET", "/", true));
    connection.feed(&request(3, "POST", "/", false));
    connection.sent();
    connection.now.instant += 2 * LIMIT;
    assert_eq!(connection.feed(&content(3, 1, true)), Flow::Close);
    let sent: Vec<_> = connection.sent().into_iter().map(|(kind, id, _)| (kind, id)).collect();
    assert_eq!(sent, [(Kind::RST_STREAM, 1), (Kind::RST_STREAM, 3), (Kind::GOAWAY, 0)]);
}

#[test]
fn a_stopping_server_sends_goaway_at_once_and_answers_no_later_request() {
    let mut connection = Connection::new();
    let stop = Arc::new(AtomicBool::new(false));
    let is_set = Arc::clone(&stop);
    connection.site = connection.site.stops_when(move || is_set.load(Relaxed));
    connection.feed(&request(1, "POST", "/", false));
    connection.feed(&request(3, "GET", "/", true));
    connection.sent();
    stop.store(true, Relaxed);
    assert_eq!(connection.feed(&request(5, "GET", "/", true)), Flow::Continue);
    assert_eq!(connection.sent(), [(Kind::GOAWAY, 0, 0)]);
    connection.feed(&content(1, 1, true));
    assert_eq!(connection.sent(), [(Kind::HEADERS, 1, LITERAL), (Kind::DATA, 1, b'T')]);
    connection.site.end(&mut connection.out);
    assert_eq!(connection.sent(), []);
}

/// The same that HTTP/1.1 refuses.
#[test]
fn a_request_names_one_valid_host_and_one_known_expectation() {
    let mut connection = Connection::new();
    let plain = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
    let mut stream = 1;
    let mut status = |more: &[(&str, &str)]| {
        let all = [&plain[..], more].concat();
        connection.feed(&with_fields(stream, &all, true));
        stream += 2;
        let (kind, _, first) = connection.sent()[0];
        assert_eq!(kind, Kind::HEADERS, "{more:?}");
        first
    };
    let bad = 0x8c; // 400
    for authority in ["a", "a:80", "[::1]:1"] {
        assert_eq!(status(&[(":authority", authority)]), OK);
        assert_eq!(status(&[("host", authority)]), OK);
        assert_eq!(status(&[(":authority", authority), ("host", authority)]), OK);
    }
    for wrong in ["", "u@a", ":80", "a:x", "a b", "a/", "[a]"] {
        assert_eq!(status(&[(":authority", wrong)]), bad, "{wrong}");
        assert_eq!(status(&[("host", wrong)]), bad, "{wrong}");
    }
    assert_eq!(status(&[]), bad);
    assert_eq!(status(&[("host", "a"), ("host", "a")]), bad);
    assert_eq!(status(&[(":authority", "a"), ("host", "b"), ("host", "a")]), bad);
    let expects = |values: [&'static str; 2]| {
        [(":authority", "a"), ("expect", values[0]), ("expect", values[1])]
    };
    assert_eq!(status(&expects(["100-continue"; 2])), OK);
    assert_eq!(status(&expects(["junk", "100-continue"])), LITERAL);
    assert_eq!(status(&expects(["100-continue", "junk"])), LITERAL);
}

#[test]
fn nothing_is_allocated_for_a_request() {
    let mut connection = Connection::new();
    let posts = |id: u32| [request(id, "POST", "/", false), content(id, 9, true)].concat();
    let both = |nth: u32| [request(4 * nth + 1, "GET", "/", true), posts(4 * nth + 3)].concat();
    let inputs: Vec<Vec<u8>> = (0..200).map(both).collect();
    connection.out.reserve(1 << 20);
    let (warm_up, measured) = inputs.split_at(50);
    warm_up.iter().for_each(|input| assert_eq!(connection.feed(input), Flow::Continue));
    let counted = allocation_counter::measure(|| {
        for input in measured {
            connection.out.clear();
            connection.feed(input);
        }
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!(connection.sent().len(), 4);
}
