use super::{pair::Pair, reply::Reply, *};
use crate::{
    Compiled,
    dialect::Dialect,
    dialects::http::reply::salted,
    hash_file::HashedFile,
    protocol::{CompileOptions, Destination},
};
use regatta_http2::hpack::{Decoder, Encoder, Indexing};
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
    let order = CompileOptions { seed: 3, pipeline: PIPELINE, place, ..CompileOptions::default() };
    match workload.compile(&order).unwrap() {
        Compiled::Http2(dialect) => dialect,
        _ => panic!("another protocol"),
    }
}

/// The content of a response, from the path of its request.
type Answer = dyn FnMut(&[u8]) -> Vec<u8>;

/// A load, and a server that answers with a content for each path.
struct Server {
    pair: Pair<Reply>,
    content: Box<Answer>,
}

impl Server {
    fn new() -> Server {
        let workload = Workload::from_text(TEXT, "items").unwrap();
        Server::of(&workload, |path| [&b"item "[..], &path[1..]].concat())
    }

    fn of(workload: &Workload, content: impl FnMut(&[u8]) -> Vec<u8> + 'static) -> Server {
        Server { pair: Pair::new(dialect(workload)), content: Box::new(content) }
    }

    /// Fills all streams, and returns the server's bytes: correct responses, the last request first.
    fn turn(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for asked in self.pair.asked(&mut out).into_iter().rev() {
            let mut block = Vec::new();
            let fields: [(&[u8], &[u8], Indexing); 2] =
                [(b":status", b"200", Indexing::Without), (b"x-kind", b"item", Indexing::Without)];
            Encoder::default().encode(fields, &mut block);
            write::headers(&mut out, |_| (), (asked.stream, false), &block, 16_384);
            let content = (self.content)(asked.fields.get(b":path").unwrap());
            write::data(&mut out, |_| (), (asked.stream, true), &content, 4);
        }
        out
    }
}

#[test]
fn responses_in_pieces_of_any_size_are_right() {
    for size in [1, 2, 3, 5, 7, 9, 10, 11, 16, 17, 50, 1 << 16] {
        let mut server = Server::new();
        for turn in 1..=10 {
            let bytes = server.turn();
            server.pair.receive(&bytes, size);
            assert_eq!(server.pair.answered, turn * PIPELINE as u32);
        }
        assert_eq!(server.pair.desk.statuses()[200], u64::from(server.pair.answered));
    }
}

#[test]
fn nothing_is_allocated_after_the_first_turns() {
    let mut server = Server::new();
    for turn in 0..200 {
        if turn == 50 {
            server.pair.allocations = 0;
        }
        let bytes = server.turn();
        server.pair.receive(&bytes, 100);
    }
    assert_eq!(server.pair.allocations, 0);
    assert!(server.pair.answered == 200 * PIPELINE as u32);
}

const N: u32 = 2;

/// The load of `hash`, and the salts that it sends. The digest of the nth request is wrong.
fn hashes(wrong: usize) -> (Server, Rc<RefCell<Vec<String>>>) {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let (salts, file) = (seen.clone(), HashedFile::new());
    let server = Server::of(&Workload::parse("hash").unwrap().with_n(N).unwrap(), move |path| {
        let path = std::str::from_utf8(path).unwrap();
        let salt = path.strip_prefix("/hash?n=2&salt=").expect("a salt");
        let is_wrong = salts.borrow().len() == wrong;
        salts.borrow_mut().push(salt.to_owned());
        let digest = file.digest(if is_wrong { b"another" } else { salt.as_bytes() }, N);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
    });
    (server, seen)
}

/// The wrong answers that are found after the load.
fn verified(pair: &mut Pair<Reply>) -> Vec<Exchange> {
    let mut found = Vec::new();
    pair.dialect.verify(&mut pair.desk, &|| false, &mut |exchange| found.push(exchange));
    found
}

#[test]
fn each_request_has_its_own_salt_and_answers_are_verified_afterwards() {
    for table in [4096, 0] {
        let (mut server, seen) = hashes(usize::MAX);
        server.pair.settings = vec![(1, table)];
        for turn in 0..40 {
            if turn == 20 {
                let pair = &mut server.pair;
                pair.dialect.renew(&mut pair.talk, 0);
                pair.decoder = Decoder::new(1 << 16);
            }
            let bytes = server.turn();
            server.pair.receive(&bytes, 7 + turn);
        }
        assert_eq!(verified(&mut server.pair), []);
        let all = seen.borrow();
        assert!(all.iter().all(|salt| salt.len() == 16 && salt != salted::PLACE), "{all:?}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 40 * PIPELINE);
    }
}

#[test]
fn a_wrong_digest_is_found_with_its_request() {
    let (mut server, seen) = hashes(100);
    for _ in 0..40 {
        let bytes = server.turn();
        server.pair.receive(&bytes, 50);
    }
    let found = verified(&mut server.pair);
    assert_eq!(found.len(), 1, "{found:?}");
    let start = format!("GET /hash?n=2&salt={} HTTP/2\\r", seen.borrow()[100]);
    assert!(found[0].sent.starts_with(&start), "{found:?}");
}
