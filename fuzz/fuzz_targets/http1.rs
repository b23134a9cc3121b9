//! Both ends of HTTP/1.1: however the input is cut, the server sends the same replies, the client reads
//! the same contents, and neither buffers more than its limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_proto::http1::{
    Date, MAX_FRAME, MAX_HEAD, Method, Reply, Status,
    client::{self, Malformed},
    server::{self, Event},
};

/// Returns all replies to `pieces`. Each request's content is echoed.
fn serve<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut decoder, mut held, mut replies) = (server::Decoder::default(), Vec::new(), Vec::new());
    let date = Date::at(0);
    for piece in pieces {
        held.extend_from_slice(piece);
        while let Some((event, length)) = decoder.decode(&held) {
            match event {
                Event::Continue => replies.push(b'c'),
                Event::Rejected(rejection) => {
                    rejection.write(&date, &mut replies);
                    return replies;
                }
                Event::Request(request) => {
                    let content = request.body.pieces().collect::<Vec<_>>().concat();
                    let reply = Reply::text(Status::Ok, &content);
                    reply.write(request.terms, &date, &mut replies);
                    request.fields.iter().for_each(|(name, _)| assert!(!name.is_empty()));
                    assert!(request.path().starts_with(['/', '*']));
                }
            }
            held.drain(..length);
        }
        assert!(held.len() < MAX_FRAME);
    }
    replies
}

/// Returns all contents in `pieces`, and how each message ends.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, Malformed> {
    let (mut decoder, mut held, mut all) = (client::Decoder::default(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut rest = &held[..];
        while let Some(event) = decoder.next(&mut rest, Method::Get)? {
            match event {
                client::Event::Head(head) => all.extend(head.status.to_be_bytes()),
                // The decoder reads nothing after it.
                client::Event::Switched(_) => all.push(0),
                client::Event::Content(content) => all.extend_from_slice(content),
                client::Event::End { keep_alive } => all.push(u8::from(keep_alive)),
            }
        }
        let left = rest.len();
        held.drain(..held.len() - left);
        // The caller has to discard bytes after the last message of a connection.
        assert!(held.len() < MAX_HEAD || all.last() == Some(&0));
    }
    Ok(all)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let pieces = || bytes.chunks(usize::from(cut) + 1);
    assert_eq!(serve(std::iter::once(bytes)), serve(pieces()));
    assert_eq!(read(std::iter::once(bytes)), read(pieces()));
});
