//! This crate's client against its server, in memory: content in both directions, windows of any size, and
//! settings that change. Both ends share the reader of frames and the windows, so each is checked against an end
//! of others, too.

use super::run::fields;
use proptest::prelude::*;
use regatta_http2::{
    client::{self, Client, Config},
    frame::write,
    hpack::{Encoder, Indexing},
    server::{self, Response, Server},
};
use std::collections::HashMap;

/// Content that is different for each request.
fn content(nth: u32, most: u32) -> Vec<u8> {
    (0..nth * 37 % (most + 1)).map(|at| (at * 31 + nth * 7) as u8).collect()
}

/// A connection between both ends.
struct Pair {
    client: Client,
    server: Server,
    /// Bytes on the way to the server, and to the client.
    there: Vec<u8>,
    back: Vec<u8>,
    /// By stream: what the server received, what the client has not sent, and what it received.
    received: HashMap<u32, Vec<u8>>,
    unsent: HashMap<u32, Vec<u8>>,
    answers: HashMap<u32, Vec<u8>>,
    most: u32,
    done: u32,
}

impl Pair {
    fn new(client: Config, server: Config, most: u32) -> Pair {
        let (mut client, server) = (Client::new(client).unwrap(), Server::new(server).unwrap());
        let mut there = Vec::new();
        client.open(&mut there);
        let (received, unsent, answers) = Default::default();
        Pair { client, server, there, back: Vec::new(), received, unsent, answers, most, done: 0 }
    }

    /// Starts a request with content.
    fn start(&mut self, nth: u32) {
        let content = content(nth, self.most);
        let request = client::Request { place: nth, is_head: false, content: content.len() as u64 };
        let id = self.client.start(request).expect("room");
        let mut block = Vec::new();
        let fields = fields("POST", "/a");
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
        Encoder::default().encode(fields, &mut block);
        write::headers(&mut self.there, |_| (), (id, content.is_empty()), &block, 16_384);
        self.unsent.insert(id, content);
    }

    fn send(&mut self) {
        let Pair { client, unsent, there, .. } = self;
        unsent.retain(|id, content| {
            let sent = client.send(*id, content, there);
            content.drain(..sent);
            !content.is_empty()
        });
    }

    /// The server reads at most this many bytes, and returns the content of each request reversed.
    fn serve(&mut self, most: usize) {
        let piece = &self.there[..most.min(self.there.len())];
        let mut rest = piece;
        loop {
            let event = self.server.next(&mut rest, &mut self.back).expect("a valid client");
            let (stream, ends) = match event {
                None => break,
                Some(server::Event::Request { stream, request }) => {
                    self.received.insert(stream, Vec::new());
                    (stream, request.ends)
                }
                Some(server::Event::Content { stream, bytes, ends }) => {
                    self.received.get_mut(&stream).expect("a head").extend_from_slice(bytes);
                    (stream, ends)
                }
                other => panic!("{other:?}"),
            };
            if ends {
                let mut content = self.received.remove(&stream).expect("a head");
                content.reverse();
                let block = [0x88, 0x0f, 0x10, 1, b'x'];
                let response = Response { block: &block, content: &content };
                assert!(self.server.respond(stream, response, &mut self.back));
            }
        }
        let taken = piece.len() - rest.len();
        self.there.drain(..taken);
    }

    /// The client reads at most this many bytes.
    fn receive(&mut self, most: usize) {
        let piece = &self.back[..most.min(self.back.len())];
        let mut rest = piece;
        loop {
            let event = self.client.next(&mut rest, &mut self.there).expect("a valid server");
            let (stream, ends) = match event {
                None => break,
                Some(client::Event::Head { stream, head }) => {
                    assert_eq!((head.status, head.fields.iter().len()), (200, 2));
                    self.answers.insert(stream.id, Vec::new());
                    (stream, head.ends)
                }
                Some(client::Event::Content { stream, bytes, ends }) => {
                    self.answers.get_mut(&stream.id).expect("a head").extend_from_slice(bytes);
                    (stream, ends)
                }
                Some(client::Event::Settings(_) | client::Event::Window { .. }) => continue,
                other => panic!("{other:?}"),
            };
            if ends {
                let mut expected = content(stream.place, self.most);
                expected.reverse();
                assert_eq!(self.answers.remove(&stream.id), Some(expected));
                self.done += 1;
            }
        }
        let taken = piece.len() - rest.len();
        self.back.drain(..taken);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_requests_are_answered_with_any_windows_and_pieces(
        windows in (1_u32..3000, 1_u32..3000),
        streams in 1_u32..20,
        most in 0_u32..4000,
        tables in (0_u32..200, 0_u32..200),
        pieces in (1_usize..9000, 1_usize..9000),
    ) {
        let client = Config {
            max_streams: streams,
            stream_window: windows.0,
            connection_window: 65_535,
            header_table: tables.0,
            header_list: 4096,
        };
        let server = Config {
            max_streams: streams,
            stream_window: windows.1,
            connection_window: 65_535,
            header_table: tables.1.max(4096),
            header_list: 4096,
        };
        let (mut pair, mut next, requests) = (Pair::new(client, server, most), 0, 60);
        let mut turns = 0;
        while pair.done < requests {
            while next < requests && pair.client.room(0) > 0 {
                pair.start(next);
                next += 1;
            }
            pair.send();
            // A piece may be too short for a frame, so the rest follows now and then.
            let is_whole = turns % 10 == 9;
            pair.serve(if is_whole { usize::MAX } else { pieces.0 });
            pair.receive(if is_whole { usize::MAX } else { pieces.1 });
            turns += 1;
            prop_assert!(turns < 1_000_000, "it stalls");
        }
        prop_assert_eq!((pair.server.open_streams(), pair.client.open_streams()), (0, 0));
        prop_assert!(pair.server.is_settled() && pair.client.is_settled());
    }
}
