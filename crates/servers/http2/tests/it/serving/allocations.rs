//! In the steady state, a server allocates nothing: not for a request, its content, nor for its response,
//! whether that fits into the windows or waits.

use super::run::request;
use crate::run::{block, data, settings, window_update};
use regatta_http2::{
    frame::write,
    server::{Config, Event, Response, Server},
};

#[test]
fn nothing_is_allocated_after_the_first_requests() {
    let mut server = Server::new(Config::SERVER).unwrap();
    let mut out = Vec::with_capacity(1 << 20);
    let head = block(&[(":status", "200"), ("content-type", "text/plain")]);
    let mut answered = 0;
    let mut exchange = |server: &mut Server, mut input: &[u8], out: &mut Vec<u8>| {
        out.clear();
        loop {
            let stream = match server.next(&mut input, out).unwrap() {
                None => break,
                Some(Event::Request { stream, request }) if request.ends => stream,
                Some(Event::Content { stream, ends: true, .. }) => stream,
                Some(_) => continue,
            };
            let response = Response { block: &head, content: &[b'x'; 30] };
            assert!(server.respond(stream, response, out));
            answered += 1;
        }
        assert!(input.is_empty());
    };
    exchange(&mut server, &[write::PREFACE, &settings(&[(4, 10)])].concat(), &mut out);
    // 20 streams wait for their windows at once.
    let round = |nth: u32| {
        let streams = (0..20).map(|at| 1 + 40 * nth + 2 * at);
        let posts = streams
            .clone()
            .flat_map(|id| [request(id, "POST", false), data(id, b"abc", true)].concat());
        let windows = streams.flat_map(|id| window_update(id, 20));
        posts.chain(windows).chain(window_update(0, 600)).collect::<Vec<u8>>()
    };
    let rounds: Vec<Vec<u8>> = (0..100).map(round).collect();
    let (warm_up, measured) = rounds.split_at(20);
    warm_up.iter().for_each(|round| exchange(&mut server, round, &mut out));
    let counted = allocation_counter::measure(|| {
        measured.iter().for_each(|round| exchange(&mut server, round, &mut out));
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!((answered, server.open_streams()), (2000, 0));
}
