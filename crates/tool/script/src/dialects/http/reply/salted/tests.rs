//! Salts are never repeated, and answers are verified afterwards.

use super::super::{receive::ConnectionState, receive::Http, thread_state::ThreadState};
use super::*;
use crate::dialects::http::asks::HttpAsks;
use crate::{
    dialect::{At, Dialect},
    protocol::{Asks, CompileOptions, Destination, Speech},
};
use regatta_record::Heads;
use std::{collections::HashSet, sync::LazyLock};

const PIPELINE: u32 = 8;
const N: u32 = 2;

fn hash(seed: u64) -> Http {
    let order = CompileOptions {
        seed,
        pipeline: PIPELINE as usize,
        place: Destination::default(),
        ..CompileOptions::default()
    };
    match (HttpAsks::Hash { n: N, heads: Heads::Varied }).compile(&order) {
        Ok(Speech::Own(http)) => http,
        other => panic!("{other:?}"),
    }
}

/// A connection on a thread of its own.
struct Client<'h> {
    http: &'h Http,
    cursor: Cursor,
    talk: ConnectionState,
    desk: ThreadState,
}

impl<'h> Client<'h> {
    fn new(http: &'h Http, slot: u32) -> Self {
        let (cursor, talk) = (Cursor::new(http.script(), 0), http.talk(slot));
        Client { http, cursor, talk, desk: http.desk(|| 0) }
    }

    /// Issues `k` more requests, writes `cut` bytes at a time, and returns the written bytes.
    fn ask(&mut self, k: u32, cut: usize) -> Vec<u8> {
        self.cursor.ask(k);
        let mut written = Vec::new();
        loop {
            let bytes = self.http.unsent(&self.cursor, &mut self.talk, 0);
            let n = bytes.len().min(cut);
            if n == 0 {
                return written;
            }
            written.extend_from_slice(&bytes[..n]);
            self.cursor.wrote(n);
        }
    }

    fn receive(&mut self, data: &[u8]) -> Result<u32, Box<Exchange>> {
        let Client { http, cursor, talk, desk } = self;
        http.receive(At { cursor, talk, desk }, data, 0, &mut ())
    }

    /// Verifies all answers and returns the wrong ones.
    fn verify(&mut self) -> Vec<Exchange> {
        let mut found = Vec::new();
        self.http.verify(&mut self.desk, &|| false, &mut |exchange| found.push(exchange));
        found
    }
}

/// Returns the salts of requests.
fn salts(requests: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(requests).unwrap();
    let salts = text.split("&salt=").skip(1).map(|rest| rest[..DIGITS].to_owned());
    salts.collect()
}

fn answer(salt: &str) -> String {
    static FILE: LazyLock<HashedFile> = LazyLock::new(HashedFile::new);
    hex(&FILE.digest(salt.as_bytes(), N))
}

fn reply(content: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len()).into()
}

fn chunked(content: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{content}\r\n0\r\n\r\n")
        .into()
}

#[test]
fn never_sends_a_salt_twice_on_any_connection() {
    let http = hash(1);
    let mut seen = HashSet::new();
    for slot in 0..20 {
        let mut client = Client::new(&http, slot);
        for _ in 0..10 {
            for _ in 0..50 {
                let salts = salts(&client.ask(PIPELINE, usize::MAX));
                assert_eq!(salts.len(), PIPELINE as usize);
                for salt in salts {
                    client.receive(&reply(crate::hash_file::DIGEST)).unwrap();
                    assert!(seen.insert(salt));
                }
            }
            // The last requests of a connection may stay without a reply.
            seen.extend(salts(&client.ask(3, usize::MAX)));
            client.cursor = Cursor::new(http.script(), 0);
            http.renew(&mut client.talk, slot);
        }
    }
    assert_eq!(seen.len(), 20 * 10 * (50 * PIPELINE as usize + 3));
    let other = hash(2);
    let other = salts(&Client::new(&other, 0).ask(PIPELINE, usize::MAX));
    assert!(other.iter().all(|salt| !seen.contains(salt)), "salts depend on the seed");
}

#[test]
fn requests_are_the_same_however_they_are_split() {
    let http = hash(1);
    let whole = Client::new(&http, 3).ask(PIPELINE, usize::MAX);
    for cut in 1..80 {
        let mut client = Client::new(&http, 3);
        assert_eq!(client.ask(PIPELINE, cut), whole, "{cut}");
    }
}

#[test]
fn verifies_answers_after_the_load_and_reports_wrong_ones_with_their_request() {
    let http = hash(1);
    for framed in [reply, chunked] {
        for cut in [usize::MAX, 100, 1] {
            let mut client = Client::new(&http, 3);
            let mut asked = Vec::new();
            for round in 0..30 {
                let requests = client.ask(4, usize::MAX);
                for salt in salts(&requests) {
                    // The third answer of the 21st group of four is wrong, as from a server that always
                    // sends the same digest.
                    let is_wrong = asked.len() == 20 * 4 + 2;
                    let right = answer(&salt);
                    let content = if is_wrong { crate::hash_file::DIGEST } else { &right };
                    for piece in framed(content).chunks(cut) {
                        client.receive(piece).unwrap_or_else(|wrong| panic!("{round}: {wrong:?}"));
                    }
                    asked.push(salt);
                }
            }
            assert_eq!(client.cursor.owed(), 0);
            let found = client.verify();
            let [Exchange { sent, expected, received, reply_index }] = &found[..] else {
                panic!("{found:?}")
            };
            let salt = &asked[82];
            assert!(sent.starts_with(&format!("GET /hash?n=2&salt={salt} HTTP/1.1")), "{sent}");
            assert_eq!(*expected, format!("status 200, the content {}", answer(salt)));
            assert_eq!(*received, format!("the content {}", crate::hash_file::DIGEST));
            assert_eq!(*reply_index, 82);
        }
    }
}

#[test]
fn rejects_an_invalid_digest_at_once_and_shows_its_salt() {
    let http = hash(1);
    let mut client = Client::new(&http, 3);
    let salts = salts(&client.ask(2, usize::MAX));
    client.receive(&reply(&answer(&salts[0]))).unwrap();
    let wrong = client.receive(&reply(&answer(&salts[1]).to_uppercase())).unwrap_err();
    assert!(wrong.sent.contains(&salts[1]), "{wrong:?}");
    assert!(wrong.expected.ends_with("a SHA-256 in lower-case hex as the content"), "{wrong:?}");
    let mut client = Client::new(&http, 3);
    client.ask(2, usize::MAX);
    let more = [reply(&answer(&salts[0])), reply(&answer(&salts[1])), b"x".to_vec()].concat();
    let unsolicited = client.receive(&more).unwrap_err();
    assert!(unsolicited.sent.contains(&salts[1]), "{unsolicited:?}");
}

#[test]
fn keeps_each_answer_with_the_same_probability() {
    let mut answers = Answers::new();
    let all = 4 * MOST_KEPT as u32;
    for reply in 0..all {
        answers.keep(Answer { salt: 0, exchange: 0, reply, digest: [0; 32] });
    }
    assert_eq!(answers.kept_count(), MOST_KEPT);
    // A quarter of each quarter is kept, ±1%, which is seven standard deviations.
    for quarter in 0..4 {
        let of = |answer: &&Answer| answer.reply / MOST_KEPT as u32 == quarter;
        let kept = answers.kept.iter().filter(of).count();
        assert!(kept.abs_diff(MOST_KEPT / 4) < MOST_KEPT / 100, "{quarter}: {kept}");
    }
}

#[test]
fn verifies_the_minimum_number_even_when_late() {
    let http = hash(1);
    let mut client = Client::new(&http, 3);
    for _ in 0..100 {
        client.ask(1, usize::MAX);
        client.receive(&reply(crate::hash_file::DIGEST)).unwrap();
    }
    let mut found = 0;
    http.verify(&mut client.desk, &|| true, &mut |_| found += 1);
    assert_eq!(found, FEWEST_VERIFIED);
}
