//! Both ends of HTTP/2: however the input is cut, events and answers are the same, and at most a frame is not
//! taken. Field blocks: fields that are decoded are the same after they are encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_http2::{
    client::{Client, Config, Event, MAX_FRAME, Request},
    frame::write,
    hpack::{Decoder, Encoder, Field, Fields, Indexing},
    server::{self, Response, Server},
};

/// Returns all events in `pieces`, as text, and what the client answers. Content is in pieces, so each of
/// its bytes is one event.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, Vec<u8>) {
    let config = Config { max_streams: 8, stream_window: 1000, ..Config::CLIENT };
    let mut client = Client::new(config).expect("a valid config");
    let (mut held, mut all, mut out) = (Vec::new(), Vec::new(), Vec::new());
    client.open(&mut out);
    for place in 0..8 {
        let request = Request { place, is_head: place == 3, content: u64::from(place / 4 * 10) };
        client.start(request).expect("room");
    }
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut rest = &held[..];
        loop {
            match client.next(&mut rest, &mut out) {
                Ok(None) => break,
                Ok(Some(Event::Content { stream, bytes, ends })) => {
                    all.extend(bytes.iter().map(|byte| format!("{stream:?} {byte}")));
                    all.extend(ends.then(|| format!("{stream:?} ends")));
                }
                Ok(Some(event)) => all.push(format!("{event:?}")),
                Err(rule) => all.push(format!("{rule:?}")),
            }
        }
        let left = rest.len();
        assert!(left <= MAX_FRAME);
        held.drain(..held.len() - left);
    }
    (all, out)
}

/// The same for a server, which answers each request that is complete.
fn serve<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, Vec<u8>) {
    let config = Config { max_streams: 8, stream_window: 1000, ..Config::SERVER };
    let mut server = Server::new(config).expect("a valid config");
    let (mut held, mut all, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut rest = &held[..];
        loop {
            let complete = match server.next(&mut rest, &mut out) {
                Ok(None) => break,
                Ok(Some(server::Event::Content { stream, bytes, ends })) => {
                    all.extend(bytes.iter().map(|byte| format!("{stream} {byte}")));
                    ends.then_some(stream)
                }
                Ok(Some(event)) => {
                    all.push(format!("{event:?}"));
                    match event {
                        server::Event::Request { stream, request } => {
                            request.ends.then_some(stream)
                        }
                        server::Event::Trailers { stream, .. } => Some(stream),
                        _ => None,
                    }
                }
                Err(rule) => {
                    all.push(format!("{rule:?}"));
                    None
                }
            };
            if let Some(stream) = complete {
                let response = Response { block: &[0x88], content: &[b'x'; 20] };
                server.respond(stream, response, &mut out);
            }
        }
        let left = rest.len();
        assert!(left <= MAX_FRAME);
        held.drain(..held.len() - left);
    }
    server.end(&mut out);
    (all, out)
}

fn encode_again(block: &[u8]) {
    let (mut fields, mut again) = (Fields::default(), Fields::default());
    if Decoder::new(usize::MAX).decode(block, &mut fields).is_err() {
        return;
    }
    let representation = |field: Field<'_>| match field.never_indexed {
        true => Indexing::Never,
        false => Indexing::Incremental,
    };
    let mut encoded = Vec::new();
    let all = fields.iter().map(|field| (field.name, field.value, representation(field)));
    Encoder::default().encode(all, &mut encoded);
    Decoder::new(usize::MAX).decode(&encoded, &mut again).expect("a valid block");
    assert!(fields.iter().eq(again.iter()));
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    encode_again(bytes);
    // Without the first frame, nothing else is read.
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let whole = [settings, bytes].concat();
    let cut = usize::from(cut) + 1;
    assert_eq!(read(std::iter::once(&whole[..])), read(whole.chunks(cut)));
    let whole = [write::PREFACE, settings, bytes].concat();
    assert_eq!(serve(std::iter::once(&whole[..])), serve(whole.chunks(cut)));
});
