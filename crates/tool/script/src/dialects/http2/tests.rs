use super::*;
use crate::{
    Compiled, Cursor,
    dialect::{At, Dialect},
    dialects::http::reply::salted,
    hash_file::HashedFile,
    protocol::{CompileOptions, Destination},
};
use regatta_http2::{
    frame::Header,
    hpack::{Decoder, Encoder, Fields, Indexing},
};
use regatta_record::Exchange;
use std::{cell::RefCell, collections::HashSet, rc::Rc};

const TEXT: &str = r#"
protocol = "http"

[[request]]
path = "/{n=int:0..99999}"
expect_headers = { x-kind = "item" }
exact = "item {n}"

[[request]]
path = "/{n=int:0..99999}"
expect_headers = { x-kind = "item" }
regex = "item [0-9]+"
"#;

const PIPELINE: usize = 8;

fn dialect(workload: &Workload) -> Dialect2 {
    let workload = workload.adopted("http2", false).unwrap();
    let place = Destination { host: "a.test", ..Destination::default() };
    let order = CompileOptions { seed: 3, pipeline: PIPELINE, place, shared: None, machines: None };
    match workload.compile(&order).unwrap() {
        Compiled::Http2(dialect) => dialect,
        _ => panic!("another protocol"),
    }
}

/// The content of a response, from the path of its request.
type Answer = dyn FnMut(&[u8]) -> Vec<u8>;

/// A connection of the load, and the server's end of it.
struct Pair {
    dialect: Dialect2,
    cursor: Cursor,
    talk: talk::ConnectionState,
    desk: thread_state::ThreadState,
    decoder: Decoder,
    answered: u32,
    /// Allocations of the load's side.
    allocations: u64,
    /// The content for a path.
    content: Box<Answer>,
    settings: Vec<(u16, u32)>,
}

impl Pair {
    fn new() -> Pair {
        let workload = Workload::from_text(TEXT, "items").unwrap();
        Pair::of(&workload, |path| [&b"item "[..], &path[1..]].concat())
    }

    fn of(workload: &Workload, content: impl FnMut(&[u8]) -> Vec<u8> + 'static) -> Pair {
        let dialect = dialect(workload);
        let content = Box::new(content);
        let (talk, desk) = (dialect.talk(0), dialect.desk(|| 0));
        let cursor = Cursor::new(dialect.script(), 0);
        let decoder = Decoder::new(1 << 16);
        let (answered, allocations, settings) = (0, 0, Vec::new());
        Pair { dialect, cursor, talk, desk, decoder, answered, allocations, content, settings }
    }

    /// Fills all streams, and returns the server's bytes: correct responses, the last request first.
    fn turn(&mut self) -> Vec<u8> {
        let Pair { dialect, cursor, talk, .. } = self;
        let mut sent = Vec::with_capacity(1 << 16);
        let count = allocation_counter::measure(|| {
            cursor.ask(PIPELINE as u32 - cursor.owed());
            let bytes = dialect.unsent(cursor, talk, 0);
            sent.extend_from_slice(bytes);
            let n = bytes.len();
            dialect.wrote(cursor, talk, n);
        });
        self.allocations += count.count_total;
        let mut input = sent.strip_prefix(write::PREFACE).unwrap_or(&sent);
        let (mut out, mut streams) = (Vec::new(), Vec::new());
        if input.len() < sent.len() {
            write::settings(&mut out, &self.settings);
        }
        while let Some((header, rest)) = input.split_first_chunk() {
            let header = Header::read(header);
            let (payload, rest) = rest.split_at(header.length as usize);
            input = rest;
            if header.kind == Kind::HEADERS {
                let mut fields = Fields::default();
                self.decoder.decode(payload, &mut fields).unwrap();
                let path = fields.get(b":path").unwrap().to_vec();
                streams.push((header.stream, path));
            }
        }
        for (stream, path) in streams.into_iter().rev() {
            let mut block = Vec::new();
            let fields: [(&[u8], &[u8], Indexing); 2] =
                [(b":status", b"200", Indexing::Without), (b"x-kind", b"item", Indexing::Without)];
            Encoder::default().encode(fields, &mut block);
            write::headers(&mut out, |_| (), (stream, false), &block, 16_384);
            write::data(&mut out, |_| (), (stream, true), &(self.content)(&path), 4);
        }
        out
    }

    /// Passes bytes of the server to the load, in pieces of this size.
    fn receive(&mut self, bytes: &[u8], size: usize) {
        for piece in bytes.chunks(size) {
            let Pair { dialect, cursor, talk, desk, .. } = self;
            let mut right = 0;
            let count = allocation_counter::measure(|| {
                let at = At { cursor, talk: &mut *talk, desk };
                right = dialect.receive(at, piece, 0, &mut ()).unwrap();
                for _ in 0..right {
                    dialect.next_answered(talk).unwrap();
                }
            });
            self.allocations += count.count_total;
            assert_eq!(dialect.next_answered(talk), None);
            self.answered += right;
        }
    }
}

#[test]
fn responses_in_pieces_of_any_size_are_right() {
    for size in [1, 2, 3, 5, 7, 9, 10, 11, 16, 17, 50, 1 << 16] {
        let mut pair = Pair::new();
        for turn in 1..=30 {
            let bytes = pair.turn();
            pair.receive(&bytes, size);
            assert_eq!(pair.answered, turn * PIPELINE as u32);
        }
        assert_eq!(pair.desk.statuses()[200], u64::from(pair.answered));
    }
}

#[test]
fn nothing_is_allocated_after_the_first_turns() {
    let mut pair = Pair::new();
    for turn in 0..200 {
        if turn == 50 {
            pair.allocations = 0;
        }
        let bytes = pair.turn();
        pair.receive(&bytes, 100);
    }
    assert_eq!(pair.allocations, 0);
    assert!(pair.answered == 200 * PIPELINE as u32);
}

const N: u32 = 2;

/// The load of `hash`, and the salts that it sends. The digest of the nth request is wrong.
fn hashes(wrong: usize) -> (Pair, Rc<RefCell<Vec<String>>>) {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let (salts, file) = (seen.clone(), HashedFile::new());
    let pair = Pair::of(&Workload::parse("hash").unwrap().with_n(N).unwrap(), move |path| {
        let path = std::str::from_utf8(path).unwrap();
        let salt = path.strip_prefix("/hash?n=2&salt=").expect("a salt");
        let is_wrong = salts.borrow().len() == wrong;
        salts.borrow_mut().push(salt.to_owned());
        let digest = file.digest(if is_wrong { b"another" } else { salt.as_bytes() }, N);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
    });
    (pair, seen)
}

/// The wrong answers that are found after the load.
fn verified(pair: &mut Pair) -> Vec<Exchange> {
    let mut found = Vec::new();
    pair.dialect.verify(&mut pair.desk, &|| false, &mut |exchange| found.push(exchange));
    found
}

#[test]
fn each_request_has_its_own_salt_and_answers_are_verified_afterwards() {
    for table in [4096, 0] {
        let (mut pair, seen) = hashes(usize::MAX);
        pair.settings = vec![(1, table)];
        for turn in 0..40 {
            if turn == 20 {
                pair.dialect.renew(&mut pair.talk, 0);
                pair.decoder = Decoder::new(1 << 16);
            }
            let bytes = pair.turn();
            pair.receive(&bytes, 7 + turn);
        }
        assert_eq!(verified(&mut pair), []);
        let all = seen.borrow();
        assert!(all.iter().all(|salt| salt.len() == 16 && salt != salted::PLACE), "{all:?}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 40 * PIPELINE);
    }
}

#[test]
fn a_wrong_digest_is_found_with_its_request() {
    let (mut pair, seen) = hashes(100);
    for _ in 0..40 {
        let bytes = pair.turn();
        pair.receive(&bytes, 50);
    }
    let found = verified(&mut pair);
    assert_eq!(found.len(), 1, "{found:?}");
    let start = format!("GET /hash?n=2&salt={} HTTP/2\\r", seen.borrow()[100]);
    assert!(found[0].sent.starts_with(&start), "{found:?}");
}
