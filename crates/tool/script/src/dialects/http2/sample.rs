//! One request with its reply outside the load, and the replies of servers that answer all requests alike.

use super::{dialect::Dialect2, reply::Reply, talk::ConnectionState};
use crate::dialects::http::reply::{salted::Salts, seen::ContentSoFar};
use regatta_http2::{
    client::{Client, Config, Event, Request},
    frame::{MIN_MAX_SIZE, write},
    hpack::{Encoder, Indexing},
};
use regatta_record::ReplySeen;

/// Names and values.
type Fields<'f> = &'f [(&'f [u8], &'f [u8])];

/// The fields of [`canned_hello`]: those of regatta's own `hello`, as they were at 1234567890 s.
const FIELDS: Fields<'_> = &[
    (b":status", b"200"),
    (b"date", b"Fri, 13 Feb 2009 23:31:30 GMT"),
    (b"content-type", b"text/plain"),
    (b"content-length", b"29"),
];
const CONTENT: &[u8] = b"Hello. The time is 1234567890";

/// The frames of a reply to `hello`.
pub(super) fn canned_hello() -> Vec<u8> {
    canned_reply(FIELDS, CONTENT, &[])
}

/// The frames of a reply, on stream 0; without trailers if there are none. Its fields are literals, so they do not
/// depend on the connection.
pub(in crate::dialects) fn canned_reply(
    head: Fields<'_>,
    content: &[u8],
    trailers: Fields<'_>,
) -> Vec<u8> {
    let mut frames = Vec::new();
    let ends = trailers.is_empty();
    write::headers(&mut frames, |_| (), (0, false), &block(head), MIN_MAX_SIZE);
    write::data(&mut frames, |_| (), (0, ends), content, MIN_MAX_SIZE);
    if !ends {
        write::headers(&mut frames, |_| (), (0, true), &block(trailers), MIN_MAX_SIZE);
    }
    frames
}

fn block(fields: Fields<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    let fields = fields.iter().map(|(name, value)| (*name, *value, Indexing::Without));
    Encoder::default().encode(fields, &mut block);
    block
}

/// What a connection sends for its first request.
pub(super) fn asks(dialect: &Dialect2) -> Vec<u8> {
    let mut connection = ConnectionState::<Reply>::new(1, Salts::default());
    connection.fill(0..1, dialect.script.count(), &dialect.requests);
    connection.unsent().to_vec()
}

/// Describes the reply to GET on the first stream of a connection; `None` until it is complete, and if it is invalid.
pub(super) fn reply(data: &[u8]) -> Option<ReplySeen> {
    Some(ReplySeen { content: None, ..reply_with_content(data)? })
}

/// Like [`reply`], with the content.
pub(super) fn reply_with_content(data: &[u8]) -> Option<ReplySeen> {
    let mut client = Client::new(Config::CLIENT).ok()?;
    let mut owed = Vec::new();
    client.open(&mut owed);
    client.start(Request { place: 0, is_head: false, content: 0 }).ok()?;
    let (mut rest, mut bytes, mut has_date) = (data, 0, false);
    let mut content = ContentSoFar::new();
    loop {
        let before = rest.len();
        let event = client.next(&mut rest, &mut owed).ok()??;
        let ends = match event {
            Event::Head { head, .. } => {
                has_date = head.fields.iter().any(|field| field.name == b"date");
                head.ends
            }
            Event::Content { bytes, ends, .. } => {
                content.add(bytes);
                ends
            }
            Event::Trailers { .. } => true,
            Event::Reset { .. } | Event::Wrong { .. } | Event::NotProcessed { .. } => return None,
            Event::Settings(_) | Event::Interim { .. } => continue,
            Event::GoAway { .. } | Event::Window { .. } => continue,
        };
        bytes += (before - rest.len()) as u64;
        if ends {
            return Some(ReplySeen { bytes, has_date, content: Some(content.seen()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Workload, protocol::Destination};

    #[test]
    fn a_reply_is_described_as_soon_as_it_is_complete() {
        let mut came = Vec::new();
        write::settings(&mut came, &[]);
        let at = came.len();
        came.extend_from_slice(&canned_hello());
        let frames = came.len() - at;
        // Each frame gets the first stream.
        let length = usize::from(came[at + 2]);
        for header in [at, at + 9 + length] {
            came[header + 8] = 1;
        }
        for end in 0..came.len() {
            assert_eq!(reply_with_content(&came[..end]), None, "{end} bytes");
        }
        let seen = reply_with_content(&came).unwrap();
        assert_eq!((seen.bytes, seen.has_date), (frames as u64, true));
        assert_eq!(seen.content.unwrap().bytes, CONTENT.len() as u64);
    }

    #[test]
    fn a_sample_is_the_first_request_of_a_connection() {
        let hello = Workload::parse("hello").unwrap().adopted("http2", false).unwrap();
        let place = Destination { host: "a", path: None, closes: false, timeout: None };
        let sample = hello.sample(place).unwrap();
        assert!(sample.asks.starts_with(write::PREFACE));
        assert!(!sample.is_only);
    }

    #[test]
    fn replies_that_are_always_the_same_are_right_only_for_a_server_that_does_not_know_the_time() {
        let hello = Workload::parse("hello").unwrap().adopted("http2", false).unwrap();
        let (workload, canned) = hello.canned(Destination::default()).unwrap();
        assert_eq!(workload.name(), "hello");
        assert_eq!(&*canned.reply, canned_hello());
        let items = Workload::usual("http", Some("/items")).unwrap();
        assert!(items.adopted("http2", false).unwrap().canned(Destination::default()).is_none());
    }
}
