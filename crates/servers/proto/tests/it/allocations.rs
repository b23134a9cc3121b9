//! In the steady state, neither client nor server allocates for HTTP/1.1: not for a request, its
//! reply, its content, nor for a refused request.

use regatta_proto::http1::{
    Date, Field, Method, Prepared, Reply, Status, Terms, Version,
    client::{self, Ask},
    server::{self, Event},
};

const REQUESTS: &[u8] = b"GET /hash?n=1 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n\
    POST http://b/c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
    PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
    2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX: y\r\n\r\n";
const REFUSED: &[u8] = b"HEAD / HTTP/1.1\r\nHost : a\r\n\r\n";

#[test]
fn the_server_allocates_nothing() {
    let date = Date::at(784_111_777);
    let mut replies = Vec::with_capacity(64 * 1024);
    let mut decoder = server::Decoder::default();
    let mut prepared = Prepared::default();
    let (hello, upgrade) = (Reply::text(Status::Ok, b"a"), Field::new("Upgrade", "x").unwrap());
    let terms = Terms { version: Version::Http11, head_only: false, keep_alive: true };
    prepared.prepare(&hello, terms, &date);
    // The first call allocates room for the remembered head.
    answer(&mut decoder, REQUESTS, &date, &mut replies);
    let counted = allocation_counter::measure(|| {
        for cut in 0..REQUESTS.len() {
            replies.clear();
            let taken = answer(&mut decoder, &REQUESTS[..cut], &date, &mut replies);
            answer(&mut decoder, &REQUESTS[taken..], &date, &mut replies);
            answer(&mut server::Decoder::default(), REFUSED, &date, &mut replies);
            prepared.prepare(&hello, terms, &date);
            prepared.append(&mut replies);
            Reply::switching().write_with(&[upgrade], terms, &date, &mut replies);
        }
    });
    assert_eq!(replies.windows(9).filter(|w| *w == b"HTTP/1.1 ").count(), 6);
    assert_eq!(counted.count_total, 0);
}

/// Answers all complete requests. Returns the number of bytes taken.
fn answer(decoder: &mut server::Decoder, input: &[u8], date: &Date, out: &mut Vec<u8>) -> usize {
    let mut taken = 0;
    while let Some((event, length)) = decoder.decode(&input[taken..]) {
        taken += length;
        match event {
            Event::Continue => {}
            Event::Rejected(rejection) => rejection.write(date, out),
            Event::Request(request) => {
                assert!(request.body.len() <= 3 && request.fields.get("host").is_some());
                let content = request.query().unwrap_or(request.path());
                Reply::text(Status::Ok, content.as_bytes()).write(request.terms, date, out);
            }
        }
    }
    taken
}

#[test]
fn the_client_allocates_nothing() {
    const RESPONSES: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n";
    let (mut decoder, mut ends) = (client::Decoder::default(), 0);
    let mut request = Vec::with_capacity(1024);
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            request.clear();
            let (method, fields) = (Method::Post, &[("X", "y")]);
            Ask { method, target: "/", host: "a", fields, content: Some(b"abc") }
                .write(&mut request);
            let mut rest = RESPONSES;
            while let Some(event) = decoder.next(&mut rest, method).unwrap() {
                ends += u32::from(matches!(event, client::Event::End { keep_alive: true }));
            }
            assert!(rest.is_empty());
        }
    });
    assert_eq!(ends, 200);
    assert_eq!(counted.count_total, 0);
}
