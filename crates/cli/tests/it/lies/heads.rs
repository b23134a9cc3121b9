//! The variety of request heads.

use crate::lies::{
    load,
    server::{Server, read_head, reply},
};
use std::{
    collections::BTreeSet,
    io::{BufReader, Write},
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

/// Returns the distinct heads of 3,000 requests of `hello`.
fn seen(more: &[&str]) -> BTreeSet<String> {
    let heads: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = heads.clone();
    let server = Server::start(move |_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(head) = read_head(&mut reader) {
            seen.lock().unwrap().insert(head);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let content = format!("Hello. The time is {now}");
            if (&stream).write_all(reply(200, &content).as_bytes()).is_err() {
                return;
            }
        }
    });
    let all = [&["--workload", "hello", "-c", "2", "-n", "3000"], more].concat();
    load(&server.http_url(), &all).with_status(0);
    drop(server);
    let heads = heads.lock().unwrap();
    heads.clone()
}

#[test]
fn requests_of_hello_have_more_than_a_thousand_distinct_heads() {
    let heads = seen(&[]);
    assert!(heads.len() > 1000, "{}", heads.len());
    let lengths: BTreeSet<_> = heads.iter().map(String::len).collect();
    assert!(lengths.len() > 100 && lengths.last() > Some(&700), "{lengths:?}");
    assert!(heads.iter().all(|head| head.starts_with("GET / HTTP/1.1\r\nHost: 127.0.0.1:")));
    assert!(heads.iter().any(|head| head.contains("Mozilla/5.0") && head.contains("\r\nCookie: ")));
}

#[test]
fn heads_identical_sends_one_head() {
    assert_eq!(seen(&["--heads", "identical"]).len(), 1);
}

#[test]
fn heads_is_refused_for_workloads_without_heads() {
    let server = Server::lines(|_, _, line| Some(crate::lies::server::double(line)));
    let more = ["--workload", "double", "--heads", "identical", "-n", "10"];
    let ended = load(&server.line_url(), &more).with_status(2);
    assert!(
        ended.stderr.contains("--heads applies only to the workloads hello and hash"),
        "{ended:?}"
    );
}
