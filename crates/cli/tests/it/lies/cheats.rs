//! Servers that skip the work of `hash`. Their replies look right; the load verifies them after its end.

use crate::lies::{
    load,
    server::{Server, read_head, reply},
};
use regatta_script::hash_file::HashedFile;
use std::{
    collections::HashMap,
    io::{BufReader, Write},
    net::Shutdown,
    sync::{LazyLock, Mutex},
};

static FILE: LazyLock<HashedFile> = LazyLock::new(HashedFile::new);

/// Number of requests of one load.
const REQUESTS: &str = "200";

/// Starts a server of `hash` that gets its digests from `answer`, a function of `n` and the salt.
fn serve(answer: impl Fn(u32, &str) -> [u8; 32] + Send + Sync + 'static) -> Server {
    Server::start(move |_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(head) = read_head(&mut reader) {
            let (_, query) = head.split_once("?n=").expect("an n");
            let (query, _) = query.split_once(' ').expect("a version");
            let (n, salt) = query.split_once("&salt=").expect("a salt");
            let digest = answer(n.parse().unwrap(), salt);
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            if (&stream).write_all(reply(200, &hex).as_bytes()).is_err() {
                return;
            }
            if head.contains("Connection: close") {
                let _ = stream.shutdown(Shutdown::Write);
                return;
            }
        }
    })
}

fn asked(server: &Server, more: &[&str]) -> crate::lies::Ended {
    let url = server.http_url();
    let mut all = vec!["--workload", "hash", "-c", "4", "-n", REQUESTS];
    all.extend(more);
    load(&(url + "hash"), &all)
}

/// Checks that the server is disqualified and that the exchange is shown.
fn assert_found(server: &Server, more: &[&str]) {
    let ended = asked(server, more).with_status(1);
    let text = ended.text();
    for part in ["GET /hash?n=1&salt=", "status 200, the content ", "the content "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_honest_server_passes() {
    let server = serve(|n, salt| FILE.digest(salt.as_bytes(), n));
    asked(&server, &[]).with_status(0);
    asked(&server, &["--churn"]).with_status(0);
    asked(&server, &["--processes", "2"]).with_status(0);
}

#[test]
fn a_server_that_ignores_the_salt_is_disqualified() {
    let server = serve(|n, _| FILE.digest(b"0", n));
    assert_found(&server, &[]);
    assert_found(&server, &["--churn"]);
    assert_found(&server, &["--processes", "2"]);
}

#[test]
fn a_server_that_ignores_n_is_disqualified() {
    assert_found(&serve(|_, salt| FILE.digest(salt.as_bytes(), 2)), &[]);
}

#[test]
fn a_server_that_answers_from_a_cache_is_disqualified() {
    // It computes once for each n and first digit of the salt.
    let known: Mutex<HashMap<(u32, char), [u8; 32]>> = Mutex::default();
    let server = serve(move |n, salt| {
        let key = (n, salt.chars().next().unwrap());
        let mut known = known.lock().unwrap();
        *known.entry(key).or_insert_with(|| FILE.digest(salt.as_bytes(), n))
    });
    assert_found(&server, &[]);
}

#[test]
fn a_cache_of_whole_requests_never_hits() {
    let asked_for: Mutex<HashMap<String, u32>> = Mutex::default();
    let server = serve(move |n, salt| {
        let times = asked_for
            .lock()
            .unwrap()
            .entry(salt.to_owned())
            .and_modify(|k| *k += 1)
            .or_insert(1)
            .to_owned();
        // The digest is wrong if the same salt is requested again.
        FILE.digest(salt.as_bytes(), n + times - 1)
    });
    asked(&server, &[]).with_status(0);
    // The seed determines the salts.
    asked(&server, &["--churn", "--seed", "2"]).with_status(0);
}
