//! However replies are split and framed, correct ones pass, and a changed byte in a checked place is
//! found.

use super::*;
use crate::dialects::http::{
    reply::expected::{Content, Status},
    requests::{HttpRequest, HttpWorkload},
};
use crate::{
    cursor::Cursor,
    pieces::receive,
    protocol::{CompileOptions, Destination},
    time::SECOND,
};
use proptest::prelude::*;
use regatta_testkit::pieces::pieces;

const PIPELINE: u32 = 20;
const TEXTS: [&str; 4] = ["alpha", "", "0123456789", "a\r\nb\0c"];
const WALL: Nanos = 1_000 * SECOND;

fn requests() -> Vec<HttpRequest> {
    let text = |text: &str| {
        let mut request = HttpRequest::get("/");
        request.expected.content = Content::Text;
        request.text = text.into();
        request
    };
    TEXTS.map(text).to_vec()
}

fn http(requests: Vec<HttpRequest>) -> Http {
    let order = CompileOptions {
        seed: 5,
        pipeline: PIPELINE as usize,
        place: Destination::default(),
        ..CompileOptions::default()
    };
    HttpWorkload::new("x", requests).unwrap().compile(&order).unwrap()
}

/// A connection on a thread of its own.
struct Client<'h> {
    http: &'h Http,
    cursor: Cursor,
    talk: ConnectionState,
    desk: ThreadState,
}

impl<'h> Client<'h> {
    /// At `start`, nothing requested.
    fn new(http: &'h Http, start: u32) -> Self {
        let desk = http.desk(|| WALL);
        Client { http, cursor: Cursor::new(&http.script, start), talk: http.talk(0), desk }
    }

    /// At `start`, with `k` requests written.
    fn asked(http: &'h Http, start: u32, k: u32) -> Self {
        let mut client = Client::new(http, start);
        client.ask(k);
        client
    }

    /// Writes `k` more requests.
    fn ask(&mut self, k: u32) {
        self.cursor.ask(k);
        self.cursor.wrote(self.cursor.unsent(&self.http.script).len());
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<u32, Box<Exchange>> {
        self.receive_at(bytes, 0)
    }

    fn receive_at(&mut self, bytes: &[u8], now: Nanos) -> Result<u32, Box<Exchange>> {
        let Client { http, cursor, talk, desk } = self;
        http.receive(At { cursor, talk, desk }, bytes, now, &mut ())
    }

    fn end(&mut self) -> Result<bool, Box<Exchange>> {
        let Client { http, cursor, talk, desk } = self;
        http.end(At { cursor, talk, desk }, 0)
    }

    fn ends(&self) -> bool {
        self.http.ends(&self.talk)
    }
}

/// The framing of a reply.
#[derive(Clone, Copy, Debug)]
enum Frame {
    Length,
    Chunks(usize),
    /// A length, after an interim response.
    Interim,
}

fn reply(content: &str, frame: Frame) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nServer: x\r\n";
    match frame {
        Frame::Length => format!("{head}Content-Length: {}\r\n\r\n{content}", content.len()).into(),
        Frame::Interim => {
            [&b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"[..], &reply(content, Frame::Length)]
                .concat()
        }
        Frame::Chunks(length) => {
            let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            for chunk in content.as_bytes().chunks(length) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            bytes
        }
    }
}

/// Returns how many replies were correct, or the exchange that was not.
fn verdict(
    http: &Http,
    (start, k): (u32, u32),
    stream: &[u8],
    cuts: &[usize],
) -> Result<u64, Box<Exchange>> {
    let mut client = Client::asked(http, start, k);
    let complete = receive(stream, cuts, |data| client.receive(data))?;
    assert_eq!(u64::from(client.cursor.owed()), u64::from(k) - complete);
    Ok(complete)
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let frame = prop_oneof![
        3 => Just(Frame::Length),
        1 => (1..5_usize).prop_map(Frame::Chunks),
        1 => Just(Frame::Interim),
    ];
    prop::collection::vec(frame, 1..6)
}

/// The replies to `k` requests, and where each reply ends.
fn stream(http: &Http, (start, k): (u32, u32), frames: &[Frame]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for (i, frame) in (start..start + k).zip(frames.iter().cycle()) {
        let text = std::str::from_utf8(http.script.reply(i)).unwrap();
        bytes.extend_from_slice(&reply(text, *frame));
        ends.push(bytes.len());
    }
    (bytes, ends)
}

proptest! {
    #[test]
    fn correct_replies_pass_however_they_are_split_and_framed(
        asked in (0..64_u32, 1..=PIPELINE),
        frames in frames(),
        cuts in prop::collection::vec(1..300_usize, 1..40),
    ) {
        let http = http(requests());
        let (bytes, _) = stream(&http, asked, &frames);
        prop_assert_eq!(verdict(&http, asked, &bytes, &cuts), Ok(asked.1.into()));
    }

    /// Changes a byte in a place that is checked: `HTTP/1.` in its first line, or the text itself (any
    /// minor version is HTTP/1, RFC 9110 section 2.5).
    #[test]
    fn finds_one_changed_byte_however_replies_are_split_and_framed(
        asked in (0..64_u32, 1..=PIPELINE),
        frames in frames(),
        cuts in prop::collection::vec(1..300_usize, 1..40),
        (place, in_text) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        change in 1..=255_u8,
    ) {
        let http = http(requests());
        let (mut bytes, ends) = stream(&http, asked, &frames);
        let which = place.index(ends.len());
        let text = http.script.reply(asked.0 + which as u32);
        // A content is at the end of its reply, unless it is chunked; a chunked reply is changed in its
        // head.
        let chunked = matches!(frames[which % frames.len()], Frame::Chunks(_));
        let at = if text.is_empty() || chunked {
            let begins = if which == 0 { 0 } else { ends[which - 1] };
            begins + in_text.index("HTTP/1.".len())
        } else {
            ends[which] - text.len() + in_text.index(text.len())
        };
        bytes[at] ^= change;
        let exchange = verdict(&http, asked, &bytes, &cuts).unwrap_err();
        prop_assert_eq!(exchange.reply_index, which as u64);
    }

    #[test]
    fn finds_a_changed_chunk(
        cuts in prop::collection::vec(1..100_usize, 1..20),
        (chunk, at) in (1..6_usize, 0..10_usize),
    ) {
        let http = http(vec![requests().swap_remove(2)]);
        let wrong = TEXTS[2].replace(char::from(b'0' + at as u8), "x");
        let right = reply(TEXTS[2], Frame::Chunks(chunk));
        let bytes = [right.clone(), right, reply(&wrong, Frame::Chunks(chunk))].concat();
        let exchange = verdict(&http, (0, 3), &bytes, &cuts).unwrap_err();
        prop_assert_eq!(exchange.reply_index, 2);
        let report = format!("the content {wrong}, in HTTP/1.1 200");
        prop_assert!(exchange.received.starts_with(&report));
    }

    #[test]
    fn checks_content_that_ends_with_the_connection(
        cuts in prop::collection::vec(1..100_usize, 1..20),
        right in any::<bool>(),
    ) {
        let http = http(vec![requests().swap_remove(0)]);
            let text = if right { "alpha" } else { "alpho" };
        let bytes = format!("HTTP/1.0 200 OK\r\n\r\n{text}").into_bytes();
        let mut client = Client::asked(&http, 0, 1);
        for data in pieces(&bytes, &cuts) {
            prop_assert_eq!(client.receive(data), Ok(0));
        }
        match client.end() {
            Ok(complete) => {
                prop_assert!(complete && right && client.ends() && client.cursor.owed() == 0);
            }
            Err(exchange) => {
                prop_assert!(!right);
                prop_assert!(exchange.received.starts_with("the content alpho, in HTTP/1.0 200 OK"));
            }
        }
    }
}

/// Sends one request twice and returns how `bytes` are reported.
fn report(request: HttpRequest, bytes: &str) -> (String, String, String) {
    let http = http(vec![request]);
    let whole = verdict(&http, (0, 2), bytes.as_bytes(), &[10_000]).unwrap_err();
    let in_pieces = verdict(&http, (0, 2), bytes.as_bytes(), &[1]).unwrap_err();
    assert_eq!((&whole.expected, whole.reply_index), (&in_pieces.expected, in_pieces.reply_index));
    (whole.sent, whole.expected, whole.received)
}

#[test]
fn reports_a_wrong_reply_with_the_expected_one() {
    let get = || HttpRequest::get("/a");
    let (sent, expected, received) = report(get(), "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(sent, "GET /a HTTP/1.1\\r\\nHost: \\r\\n\\r\\n");
    assert_eq!(expected, "a status from 200 to 299");
    assert_eq!(received, "HTTP/1.1 500 Oh\\r\\nContent-Length: 0\\r\\n\\r\\n");

    // The Twisted exhibit sends text without HTTP.
    let (_, _, received) = report(get(), "Hello. The time is 1000");
    assert_eq!(
        received,
        "Hello. The time is 1000 (malformed HTTP response: Expected a status line: HTTP/1.1, three \
         digits, a reason.)"
    );
    let (_, _, received) = report(get(), "HTTP/1.1 101 Up\r\nConnection: upgrade\r\n\r\n");
    assert!(received.ends_with("(101 switches to a protocol other than HTTP)"), "{received}");
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
    let (_, _, received) = report(get(), twice);
    assert!(received.contains("(malformed HTTP response: "), "{received}");

    let mut clock = get();
    clock.expected.content = Content::Clock { within: 2 };
    let late = "HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\nHello. The time is 990";
    let (_, expected, received) = report(clock, late);
    assert!(expected.contains("within 2 seconds of"), "{expected}");
    assert!(received.starts_with("the content Hello. The time is 990, in HTTP/1.1 200 OK"));
}

#[test]
fn rejects_unsolicited_replies_except_a_request_timeout() {
    let http = http(vec![HttpRequest::get("/")]);
    let one = reply("", Frame::Length);
    let three = [&one[..], &one, &one].concat();
    let exchange = verdict(&http, (0, 2), &three, &[1_000]).unwrap_err();
    assert!(exchange.sent.starts_with("GET / ") && exchange.expected.starts_with("nothing more"));
    assert_eq!(exchange.reply_index, 2);

    let timeout = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
    let mut client = Client::asked(&http, 0, 1);
    assert_eq!(client.receive(&one), Ok(1));
    assert_eq!((client.receive(timeout), client.ends()), (Ok(0), true));
    // As a reply to a request it is checked like any other.
    assert!(Client::asked(&http, 0, 1).receive(timeout).is_err());
}

#[test]
fn nothing_may_follow_a_reply_that_closes_the_connection() {
    for end in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let http = http(vec![HttpRequest::get("/")]);
        let mut desk = http.desk(|| WALL);
        // The second one is recognised by the memo.
        for _ in 0..2 {
            let mut client = Client { desk, ..Client::asked(&http, 0, 2) };
            let result = client.receive(end.as_bytes());
            assert_eq!((result, client.ends(), client.cursor.owed()), (Ok(1), true, 1));
            desk = client.desk;
        }
        let exchange = verdict(&http, (0, 2), end.repeat(2).as_bytes(), &[1_000]).unwrap_err();
        assert!(exchange.expected.starts_with("nothing more"), "{exchange:?}");
    }
}

#[test]
fn replies_without_content_end_with_their_head() {
    let mut head = HttpRequest::get("/");
    head.expected.method = Method::Head;
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    assert_eq!(verdict(&http(vec![head]), (0, 2), &bytes.repeat(2), &[7]), Ok(2));
    for status in [204, 304] {
        let mut get = HttpRequest::get("/");
        get.expected.status = Status::Is(status);
        let bytes = format!("HTTP/1.1 {status} None\r\n\r\n").repeat(2);
        assert_eq!(verdict(&http(vec![get]), (0, 2), bytes.as_bytes(), &[1_000]), Ok(2));
    }
}

#[test]
fn a_reply_may_arrive_before_its_request_is_completely_written() {
    let mut post = HttpRequest::get("/");
    post.expected.method = Method::Post;
    post.content = Some(vec![b'x'; 1_000]);
    let http = http(vec![post]);
    let one = reply("", Frame::Length);
    // The last exchange before the script repeats.
    let mut client = Client::new(&http, http.script.count() - 1);
    client.cursor.ask(2);
    let unsent = client.cursor.unsent(&http.script).len();
    let nothing = client.receive(&one).unwrap_err();
    assert_eq!(nothing.sent, "");
    client.cursor.wrote(unsent / 2 - 1);
    assert_eq!(client.receive(&one), Ok(1));
    assert!(client.receive(&one).is_err());
    client.cursor.wrote(unsent - (unsent / 2 - 1));
    assert_eq!(client.receive(&one), Ok(1));
    assert!(client.cursor.unsent(&http.script).is_empty() && client.cursor.owed() == 0);
}

#[test]
fn only_checked_content_has_a_length_limit() {
    let frame = |length: usize| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{length:x}\r\n").into_bytes()
    };
    let anything = || regex::bytes::Regex::new(r"(?s)\A.*\z").unwrap();
    for (content, text, most) in [
        (Content::Matches(anything()), "", Some(16 << 20)),
        (Content::Json(Vec::new()), "", Some(16 << 20)),
        (Content::Clock { within: 2 }, "", Some(100)),
        (Content::Text, "xxx", Some(3)),
        (Content::Prefix, "xxx", None),
        (Content::Any, "", None),
    ] {
        let mut get = HttpRequest::get("/");
        (get.expected.content, get.text) = (content, text.into());
        let http = http(vec![get]);
        let mut client = Client::asked(&http, 0, 1);
        let mut take = |bytes: &[u8]| client.receive(bytes).map(|_| ());
        let length = most.unwrap_or(20 << 20);
        take(&frame(length + 1)).unwrap();
        let megabyte = vec![b'x'; 1 << 20];
        for at in (0..length).step_by(1 << 20) {
            take(&megabyte[..(length - at).min(1 << 20)]).unwrap();
        }
        match (take(b"x"), most) {
            (Ok(()), most) => assert_eq!(most, None),
            (Err(exchange), most) => {
                let said = format!("(more than {} bytes of content)", most.unwrap());
                assert!(exchange.received.ends_with(&said), "{exchange:?}");
            }
        }
    }
}

#[test]
fn a_correct_time_expires() {
    let mut get = HttpRequest::get("/");
    get.expected.content = Content::Clock { within: 2 };
    let http = http(vec![get]);
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nHello. The time is 1000";
    static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let wall = || WALL + NOW.load(std::sync::atomic::Ordering::Relaxed);
    let mut desk = http.desk(wall);
    for (at, right) in [(0, true), (1, true), (2, true), (3, false)] {
        let now = at * SECOND;
        NOW.store(now, std::sync::atomic::Ordering::Relaxed);
        let mut client = Client { desk, ..Client::asked(&http, 0, 1) };
        let result = client.receive_at(bytes, now);
        assert_eq!(result.is_ok(), right, "{result:?} at {at}");
        desk = client.desk;
    }
}

#[test]
fn a_time_may_be_as_old_as_the_previous_read() {
    let mut get = HttpRequest::get("/");
    get.expected.content = Content::Clock { within: 2 };
    let http = http(vec![get]);
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nHello. The time is 1000";
    // The wall clock always returns 1005.
    for (asked, read, right) in
        [(0, None, true), (4, None, false), (0, Some(4), false), (0, Some(1), true)]
    {
        let mut client =
            Client { desk: http.desk(|| WALL + 5 * SECOND), ..Client::asked(&http, 0, 2) };
        http.asked(&mut client.talk, 2, asked * SECOND);
        if let Some(read) = read {
            client.receive_at(b"HTTP/1.1 200 OK\r\n", read * SECOND).unwrap();
            let result = client.receive_at(&bytes[17..], 5 * SECOND);
            assert_eq!(result.is_ok(), right, "read at {read}");
            continue;
        }
        let result = client.receive_at(bytes, 5 * SECOND);
        assert_eq!(result.is_ok(), right, "asked at {asked}: {result:?}");
    }
}

#[test]
fn does_not_allocate_per_reply() {
    let http = http(vec![requests().swap_remove(2)]);
    let mut client = Client::new(&http, 0);
    let same = reply(TEXTS[2], Frame::Length);
    let chunked = reply(TEXTS[2], Frame::Chunks(3));
    let mut one_each = |bytes: &[u8], pieces: usize| {
        client.ask(1);
        for piece in bytes.chunks(bytes.len().div_ceil(pieces)) {
            client.receive(piece).unwrap();
        }
        assert_eq!(client.cursor.owed(), 0);
    };
    let mut round = || {
        for pieces in [1, 2, 3, 17] {
            one_each(&same, pieces);
            one_each(&chunked, pieces);
            one_each(&same, 1);
        }
    };
    round();
    let counted = allocation_counter::measure(|| (0..100).for_each(|_| round()));
    assert_eq!(counted.count_total, 0);
}

/// Measures the cost of the checks alone, which decides how much cheaper the load is than others.
#[test]
#[ignore = "a measurement: cargo test --release -p regatta-script --lib ns_per_reply -- --ignored --nocapture"]
fn ns_per_reply() {
    let mut get = HttpRequest::get("/");
    get.expected.content = Content::Clock { within: 2 };
    let http = http(vec![get]);
    let bytes = |second: u64, fraction: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:{second:02} GMT\r\nContent-Type: \
             text/plain\r\nContent-Length: 30\r\n\r\nHello. The time is 1000.{fraction}",
        )
    };
    let of = |name: &str, replies_seen: &[String], pipeline: u32| {
        let mut client = Client::new(&http, 0);
        let streams: Vec<_> = replies_seen.iter().map(|r| r.repeat(pipeline as usize)).collect();
        let rounds = 4_000_000 / pipeline;
        let began = thread_cpu();
        for i in 0..rounds as usize {
            client.ask(pipeline);
            let result = client.receive_at(streams[i % streams.len()].as_bytes(), 1);
            assert_eq!(result, Ok(pipeline));
        }
        let ns = (thread_cpu() - began) as f64 / f64::from(rounds * pipeline);
        println!("{name}, {pipeline} at a time: {ns:.1} ns of CPU per reply");
        ns
    };
    let date = bytes(37, "000000");
    let other_date = bytes(38, "000000");
    let other_content = bytes(37, "000001");
    let mut same = 0.0;
    for pipeline in [1, 16] {
        same = of("the same again", std::slice::from_ref(&date), pipeline);
        of("another content each time", &[date.clone(), other_content.clone()], pipeline);
        of("another head each time", &[date.clone(), other_date.clone()], pipeline);
    }
    assert!(same > 0.0);
}

/// CPU time used by this thread so far, in nanoseconds.
fn thread_cpu() -> Nanos {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as u64 * SECOND + used.tv_nsec as u64
}
