//! Measures the time per request on one core in nanoseconds, without sockets, for the server
//! side: decoding a request; decoding and writing the reply of `hello`; decoding and appending that
//! reply as prepared. The last line is the client side, which decodes that reply.
//!
//! Each case is a stream of pipelined requests. The cases run in turn, one short round each, so
//! that a change in the machine's speed affects all of them. The output is the median over the
//! rounds and, in brackets, the 10th and 90th percentiles.
//!
//! `cargo run --release -p regatta-proto --example http1_speed`

use regatta_proto::http1::{
    Date, Method, Prepared, Reply, Status,
    client::{self, Ask},
    server::{self, Event},
};
use std::{hint::black_box, time::Instant};

/// Minimum number of requests in a stream. A multiple of every number of different requests below.
const REQUESTS: usize = 240;
const ROUNDS: usize = 400;
/// Passes of a case over its stream per round.
const PASSES: usize = 4;

fn main() {
    let date = Date::at(784_111_777);
    let cases = cases();
    let mut times_ns = vec![[const { Vec::new() }; 3]; cases.len()];
    let mut client_ns = Vec::new();
    let (mut replies, mut reply) = (Vec::new(), Vec::new());
    let mut prepared = [Prepared::default(), Prepared::default()];
    let ask = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    answer(&mut server::Decoder::default(), ask, |request| respond(request, &date, &mut reply));
    for _ in 0..ROUNDS {
        for (case, [decode_ns, written_ns, prepared_ns]) in cases.iter().zip(&mut times_ns) {
            decode_ns.push(case.ns_per_request(|request| {
                black_box((request.path_and_query(), request.terms));
            }));
            written_ns.push(case.ns_per_request(|request| {
                if replies.len() > 64 * 1024 {
                    replies.clear();
                }
                respond(request, &date, &mut replies);
            }));
            prepared_ns.push(case.ns_per_request(|request| {
                if replies.len() > 64 * 1024 {
                    replies.clear();
                }
                respond_prepared(request, &date, &mut prepared, &mut replies);
            }));
            black_box(&replies);
        }
        client_ns.push(read_ns(&reply));
    }
    let [first, second, third] = ["decode", "decode, write", "decode, append"];
    println!("{:26} {:>5}   {first:20} {second:20} {third}", "ns per request", "bytes");
    for (case, [decode_ns, written_ns, prepared_ns]) in cases.iter().zip(times_ns) {
        let bytes = case.stream.len() / case.requests;
        let [decode, written, prepared] = [decode_ns, written_ns, prepared_ns].map(shown);
        println!("{:26} {bytes:5}   {decode:20} {written:20} {prepared}", case.name);
    }
    println!("{:26} {:5}   {:18}", "client: that reply", reply.len(), shown(client_ns));
}

/// A stream of requests.
struct Case {
    name: &'static str,
    requests: usize,
    stream: Vec<u8>,
    /// Each request is decoded by a new decoder.
    fresh: bool,
}

impl Case {
    /// Creates a case that repeats `requests`.
    fn new(name: &'static str, requests: &[Vec<u8>]) -> Self {
        let repeats = REQUESTS.div_ceil(requests.len());
        let stream = requests.concat().repeat(repeats);
        Case { name, requests: requests.len() * repeats, stream, fresh: false }
    }

    fn ns_per_request(&self, mut each: impl FnMut(&server::Request<'_>)) -> f64 {
        let mut decoder = server::Decoder::default();
        let started = Instant::now();
        for _ in 0..PASSES {
            if self.fresh {
                answer_fresh(black_box(&self.stream), &mut each);
            } else {
                answer(&mut decoder, black_box(&self.stream), &mut each);
            }
        }
        started.elapsed().as_nanos() as f64 / (PASSES * self.requests) as f64
    }
}

fn get<'a>(target: &'a str, fields: &'a [(&'a str, &'a str)]) -> Ask<'a> {
    Ask { method: Method::Get, target, host: "127.0.0.1:8080", fields, content: None }
}

fn written(ask: Ask<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ask.write(&mut bytes);
    bytes
}

fn cases() -> Vec<Case> {
    let short = written(get("/", &[]));
    let browser = written(get("/", BROWSER));
    let twelve: Vec<_> = ["/", "/hash?n=1000", "/articles/2024/11/on-parsing"]
        .iter()
        .flat_map(|target| FIELD_SETS.map(|fields| written(get(target, fields))))
        .collect();
    // The twelve heads, about twenty times each, in an order that repeats too late to be predicted.
    let mut seed = 1_u32;
    let shuffled: Vec<_> = (0..REQUESTS)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            twelve[(seed >> 16) as usize % twelve.len()].clone()
        })
        .collect();
    let new_short: Vec<_> =
        (0..REQUESTS).map(|n| written(get(&format!("/item/{n}"), &[]))).collect();
    let new_browser: Vec<_> =
        (0..REQUESTS).map(|n| written(get(&format!("/item/{n}"), BROWSER))).collect();
    let content = [b'x'; 100];
    let with_length: Vec<_> = (0..REQUESTS)
        .map(|n| {
            let (method, content) = (Method::Post, Some(&content[..80 + n % 20]));
            let fields = [("Content-Type", "application/json"), ("Accept", "*/*")];
            written(Ask { method, content, ..get("/", &fields) })
        })
        .collect();
    let chunked = [
        &written(Ask { method: Method::Put, ..get("/", &[("Transfer-Encoding", "chunked")]) })[..],
        b"20\r\n0123456789abcdef0123456789abcdef\r\n4\r\nabcd\r\n0\r\n\r\n",
    ]
    .concat();
    let fresh = |case| Case { fresh: true, ..case };
    vec![
        Case::new("one short head", std::slice::from_ref(&short)),
        Case::new("one browser's head", std::slice::from_ref(&browser)),
        Case::new("12 heads in turn", &twelve),
        Case::new("12 heads, shuffled", &shuffled),
        Case::new("short heads, all new", &new_short),
        Case::new("browser's heads, all new", &new_browser),
        Case::new("contents of a length", &with_length),
        Case::new("one chunked content", &[chunked]),
        fresh(Case::new("fresh decoder, short", &[short])),
        fresh(Case::new("fresh decoder, browser's", &[browser])),
        fresh(Case::new("fresh decoder, 12 heads", &twelve)),
    ]
}

const BROWSER: &[(&str, &str)] = &[
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Connection", "keep-alive"),
];

/// The fields besides Host of four kinds of clients.
const FIELD_SETS: [&[(&str, &str)]; 4] = [
    &[],
    &[("User-Agent", "curl/8.5.0"), ("Accept", "*/*")],
    BROWSER,
    &[
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip, br"),
        ("Authorization", "Bearer abcdefghijklmnopqrstuvwxyz0123456789"),
        ("X-Request-Id", "3f2b8c1e-5d6a-4f70-9b1c-2e8d7a6f5c4b"),
        ("User-Agent", "service/1.4"),
    ],
];

/// Decodes all requests of `stream` on one connection.
fn answer(
    decoder: &mut server::Decoder,
    stream: &[u8],
    mut each: impl FnMut(&server::Request<'_>),
) {
    let mut rest = stream;
    while let Some((event, length)) = decoder.decode(rest) {
        rest = &rest[length..];
        if let Event::Request(request) = event {
            each(&request);
        }
    }
    assert!(rest.is_empty());
}

/// Decodes all requests of `stream`, each on a separate connection.
fn answer_fresh(stream: &[u8], mut each: impl FnMut(&server::Request<'_>)) {
    let mut rest = stream;
    while let Some((event, length)) = black_box(server::Decoder::default()).decode(rest) {
        rest = &rest[length..];
        if let Event::Request(request) = event {
            each(&request);
        }
    }
    assert!(rest.is_empty());
}

/// Answers like `hello`.
fn respond(request: &server::Request<'_>, date: &Date, replies: &mut Vec<u8>) {
    let reply = if is_hello(request) { HELLO } else { Reply::not_found() };
    reply.write(request.terms, date, replies);
}

/// Answers like `hello`, with both replies prepared.
fn respond_prepared(
    request: &server::Request<'_>,
    date: &Date,
    prepared: &mut [Prepared; 2],
    replies: &mut Vec<u8>,
) {
    let [hello, not_found] = prepared;
    let (prepared, reply) = match is_hello(request) {
        true => (hello, HELLO),
        false => (not_found, Reply::not_found()),
    };
    if !prepared.is_for(request.terms, date) {
        prepared.prepare(&reply, request.terms, date);
    }
    prepared.append(replies);
}

const HELLO: Reply<'_> = Reply::text(Status::Ok, b"Hello. The time is 784111777");

fn is_hello(request: &server::Request<'_>) -> bool {
    matches!((request.method, request.path()), (Method::Get, "/"))
}

fn read_ns(reply: &[u8]) -> f64 {
    let mut decoder = client::Decoder::default();
    let started = Instant::now();
    for _ in 0..REQUESTS {
        let mut rest = black_box(reply);
        while let Ok(Some(event)) = decoder.next(&mut rest, Method::Get) {
            black_box(event);
        }
    }
    started.elapsed().as_nanos() as f64 / REQUESTS as f64
}

fn shown(mut times_ns: Vec<f64>) -> String {
    times_ns.sort_by(f64::total_cmp);
    let at = |percent| times_ns[times_ns.len() * percent / 100];
    format!("{:5.1} [{:.1}, {:.1}]", at(50), at(10), at(90))
}
