//! Replies of streams come in the order in which they are made, and not in that of their requests.

use crate::support::{DEADLINE, Server, on_every_shared};
use regatta_http2::{
    frame::{Header, Kind, flag, write},
    hpack::{Encoder, Indexing},
};
use std::{io::Read, io::Write, net::TcpStream};

/// GET of a path, complete, on a stream.
fn get(stream: u32, path: &str, out: &mut Vec<u8>) {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "a")];
    let mut block = Vec::new();
    Encoder::default().encode(
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without)),
        &mut block,
    );
    let flags = flag::END_HEADERS | flag::END_STREAM;
    Header { length: block.len() as u32, kind: Kind::HEADERS, flags, stream }.write(out);
    out.extend_from_slice(&block);
}

fn connect(server: &Server) -> TcpStream {
    let stream = server.connect();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// The header of the next frame. Its payload is discarded.
fn next(stream: &mut TcpStream) -> Header {
    let mut header = [0; Header::SIZE];
    stream.read_exact(&mut header).expect("a frame in time");
    let header = Header::read(&header);
    stream.read_exact(&mut vec![0; header.length as usize]).expect("its payload in time");
    header
}

/// With the new window the content is sent, so the settings that raised it must have been acknowledged before
/// (RFC 9113, 6.5.3): a client may apply them only then.
#[test]
fn content_that_new_settings_permit_follows_their_acknowledgement() {
    on_every_shared(|model| {
        let server = Server::of("hash", model, &["--http2"]);
        let (mut stream, mut out) = (connect(&server), write::PREFACE.to_vec());
        write::settings(&mut out, &[(4, 0)]);
        get(1, "/hash?n=4000", &mut out);
        write::settings(&mut out, &[(4, 65_535)]);
        stream.write_all(&out).unwrap();
        let mut acknowledged = 0;
        loop {
            let header = next(&mut stream);
            match header.kind {
                Kind::SETTINGS if header.has(flag::ACK) => acknowledged += 1,
                Kind::DATA => break assert_eq!(acknowledged, 2, "{model}"),
                _ => {}
            }
        }
    });
}

/// On models whose connections are state machines. On the others, a connection is a task that computes its replies
/// itself, one after the other.
#[test]
fn a_short_reply_does_not_wait_for_a_long_one() {
    for model in ["select", "poll", "epoll", "cluster", "percore", "uring"] {
        let server = Server::of("hash", model, &["--http2"]);
        let (mut stream, mut out) = (connect(&server), write::PREFACE.to_vec());
        write::settings(&mut out, &[]);
        get(1, "/hash?n=4000", &mut out);
        get(3, "/hash?n=1", &mut out);
        get(5, "/nothing", &mut out);
        stream.write_all(&out).unwrap();
        let replies = std::iter::from_fn(|| Some(next(&mut stream)));
        let ends = replies.filter(|header| header.stream > 0 && header.has(flag::END_STREAM));
        let order: Vec<u32> = ends.take(3).map(|header| header.stream).collect();
        assert_eq!(order[2], 1, "{model}: {order:?}");
    }
}
