//! Nanoseconds of one core for a request and its reply, without sockets: the request of a browser
//! and the shortest one are read by the server end and answered as `hello` answers, one by one and
//! sixteen in a row; and that reply is read by the client end.
//!
//! `cargo run --release -p regatta-proto --example http1_speed`

use regatta_proto::http1::{
    Date, Method, Reply, Status,
    client::{self, Ask},
    server::{self, Event},
};
use std::{hint::black_box, time::Instant};

/// Short enough to lie within one turn on the processor.
const REPEATS: u32 = 500;

fn main() {
    let browser = Ask {
        method: Method::Get,
        target: "/",
        host: "127.0.0.1:8080",
        fields: &[
            (
                "User-Agent",
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            ),
            ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("Accept-Language", "en-US,en;q=0.5"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
            ("Connection", "keep-alive"),
        ],
        content: None,
    };
    let date = Date::at(784_111_777);
    for (name, ask) in [("shortest", Ask { fields: &[], ..browser }), ("browser's", browser)] {
        let mut request = Vec::new();
        ask.write(&mut request);
        let (mut decoder, mut replies) = (server::Decoder::default(), Vec::new());
        for together in [1, 16] {
            let input = request.repeat(together as usize);
            let each_ns = best_ns(|| {
                replies.clear();
                answer(&mut decoder, &date, black_box(&input), &mut replies);
                black_box(&replies);
            }) / f64::from(together);
            let bytes = request.len();
            println!(
                "server, {name} request of {bytes} bytes, {together:2} at once: {each_ns:.0} ns"
            );
        }
    }
    let (mut reply, ask) = (Vec::new(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    answer(&mut server::Decoder::default(), &date, ask, &mut reply);
    let mut decoder = client::Decoder::default();
    let each_ns = best_ns(|| {
        let mut rest = black_box(&reply[..]);
        while let Ok(Some(event)) = decoder.next(&mut rest, Method::Get) {
            black_box(event);
        }
    });
    println!("client, reply of {} bytes: {each_ns:.0} ns", reply.len());
}

/// Answers all requests of `input` as `hello` does.
fn answer(decoder: &mut server::Decoder, date: &Date, input: &[u8], replies: &mut Vec<u8>) {
    let mut rest = input;
    while let Some((event, length)) = decoder.decode(rest) {
        rest = &rest[length..];
        if let Event::Request(request) = event {
            let reply = match (request.method, request.path()) {
                (Method::Get, "/") => Reply::text(Status::Ok, b"Hello. The time is 784111777"),
                _ => Reply::not_found(),
            };
            reply.write(request.terms, date, replies);
        }
    }
}

/// The least mean of many short rounds: what disturbs only adds.
fn best_ns(mut work: impl FnMut()) -> f64 {
    let mut round_ns = || {
        let began = Instant::now();
        (0..REPEATS).for_each(|_| work());
        began.elapsed().as_nanos() as f64 / f64::from(REPEATS)
    };
    (0..400).map(|_| round_ns()).fold(f64::INFINITY, f64::min)
}
