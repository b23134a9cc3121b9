//! In the steady state, a client allocates nothing: not for a request, its content, nor for its response,
//! whether its head repeats or changes the table.

use crate::run::{block, data, frame, headers, settings, window_update};
use regatta_http2::{
    client::{Client, Config, Event, Prepared, Request},
    frame::{Kind, flag},
    hpack::{Encoder, Indexing},
};

#[test]
fn nothing_is_allocated_after_the_first_requests() {
    let config = Config { max_streams: 4, stream_window: 100, ..Config::CLIENT };
    let mut client = Client::new(config).unwrap();
    let (mut out, mut ends) = (Vec::with_capacity(1 << 20), 0);
    client.open(&mut out);
    let mut run = |client: &mut Client, mut input: &[u8], out: &mut Vec<u8>| {
        while let Some(event) = client.next(&mut input, out).unwrap() {
            ends += u32::from(matches!(
                event,
                Event::Content { ends: true, .. } | Event::Trailers { .. }
            ));
        }
        assert!(input.is_empty());
    };
    run(&mut client, &settings(&[]), &mut out);
    let content = vec![b'a'; 600];
    let prepared = Prepared::new(&block(&[(":method", "POST")]), &content, 500);
    // Responses with insertions, whose values vary; and with trailers over two frames.
    let mut encoder = Encoder::default();
    let mut changing = |nth: u32| {
        let (number, mut out) = (nth.to_string(), Vec::new());
        let fields: [(&[u8], &[u8]); 3] =
            [(b":status", b"200"), (b"x-number", number.as_bytes()), (b"date", b"today")];
        let fields = fields.map(|(name, value)| (name, value, Indexing::Incremental));
        encoder.encode(fields, &mut out);
        out
    };
    let response = |nth: u32| {
        let id = 2 * nth - 1;
        let head = match nth % 3 {
            0 => frame(Kind::HEADERS, flag::END_HEADERS, id, &changing(nth)),
            _ => headers(id, &[(":status", "200")], false),
        };
        let trailers = block(&[("grpc-status", "0")]);
        let first = frame(Kind::HEADERS, flag::END_STREAM, id, &trailers[..3]);
        let second = frame(Kind::CONTINUATION, flag::END_HEADERS, id, &trailers[3..]);
        [head, data(id, &[b'x'; 70], false), data(id, b"y", false), first, second].concat()
    };
    let responses: Vec<Vec<u8>> = (1..=2000).map(response).collect();
    let window = window_update(0, 600);
    let mut exchange = |client: &mut Client, response: &[u8], out: &mut Vec<u8>| {
        out.clear();
        let request = Request { place: 0, is_head: false, content: 600 };
        let id = client.start(request).unwrap();
        assert_eq!(client.claim(id, 600), 600);
        prepared.write(id, out);
        run(client, response, out);
        run(client, &window, out);
    };
    let (warm_up, measured) = responses.split_at(100);
    warm_up.iter().for_each(|response| exchange(&mut client, response, &mut out));
    let counted = allocation_counter::measure(|| {
        measured.iter().for_each(|response| exchange(&mut client, response, &mut out));
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!(ends, 2000);
}
