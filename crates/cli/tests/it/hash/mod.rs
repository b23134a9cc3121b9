//! `hash` on every model, and with offloaded long jobs on the models that support it.

mod turns;

use crate::support::{Server, expect_end, models, regatta};
use regatta_script::hash_file::DIGEST;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

/// Models with a thread or process per connection.
const ALONE: [&str; 3] = ["fork", "prefork", "threads"];

fn hash(model: &str, more: &[&str]) -> Server {
    Server::of("hash", model, &[&["--cores", "2"], more].concat())
}

/// Runs `test` on every model without offloading, and with it where the model supports it, all at once.
fn on_every_model(test: impl Fn(&str, &[&str]) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        let offloaded = models().into_iter().filter(|model| !ALONE.contains(model));
        let ways = models().into_iter().map(|model| (model, &[][..]));
        let ways = ways.chain(offloaded.map(|model| (model, &["--offload", "2"][..])));
        let running: Vec<_> =
            ways.map(|way| (way, scope.spawn(move || test(way.0, way.1)))).collect();
        for ((model, more), thread) in running {
            assert!(thread.join().is_ok(), "failed on {model} {more:?}; its message is above");
        }
    });
}

fn get(n: u32) -> String {
    format!("GET /hash?n={n} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn send(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).unwrap();
}

/// Reads the next reply: its head and its content.
fn reply(stream: &mut TcpStream) -> (String, String) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap(); // all models share this machine
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.split_once("Content-Length: ").expect("a length").1;
    let length = length.split_once("\r\n").unwrap().0.parse().unwrap();
    let mut content = vec![0; length];
    stream.read_exact(&mut content).unwrap();
    (head, String::from_utf8(content).unwrap())
}

fn expect_digest(stream: &mut TcpStream) {
    let (head, content) = reply(stream);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain\r\n"), "{head}");
    assert_eq!(content, DIGEST);
}

fn expect_status(stream: &mut TcpStream, status: &str) {
    let (head, content) = reply(stream);
    assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "expected {status}, got {head}");
    assert!(content.ends_with('.'), "a sentence: {content}");
}

#[test]
fn short_and_long_requests_in_a_row_are_answered_in_order() {
    on_every_model(|model, more| {
        let server = hash(model, more);
        let mut stream = server.connect();
        let bad = "GET /hash?n=none HTTP/1.1\r\nHost: a\r\n\r\n";
        let gone = "GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n";
        for _ in 0..3 {
            send(&mut stream, &[&get(60), &get(1), bad, &get(40), gone, &get(1)].concat());
            expect_digest(&mut stream);
            expect_digest(&mut stream);
            expect_status(&mut stream, "400 ");
            expect_digest(&mut stream);
            expect_status(&mut stream, "404 ");
            expect_digest(&mut stream);
        }
        send(&mut stream, &get(20).repeat(150));
        (0..150).for_each(|_| expect_digest(&mut stream));
    });
}

#[test]
fn closes_the_connection_after_the_reply_if_the_request_asks_for_it() {
    on_every_model(|model, more| {
        let server = hash(model, more);
        for request in [
            "GET /hash?n=50 HTTP/1.0\r\n\r\n",
            "GET /hash?n=1 HTTP/1.0\r\n\r\n",
            "GET /hash?n=50 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ] {
            let mut stream = server.connect();
            // Requests after the last one are never answered.
            send(&mut stream, &(get(30) + request + &get(1)));
            expect_digest(&mut stream);
            let (head, content) = reply(&mut stream);
            assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
            assert_eq!(content, DIGEST);
            expect_end(&mut stream);
        }
        // A client that has half-closed still gets its pending replies.
        let mut stream = server.connect();
        send(&mut stream, &(get(50) + &get(1)));
        stream.shutdown(Shutdown::Write).unwrap();
        expect_digest(&mut stream);
        expect_digest(&mut stream);
        expect_end(&mut stream);
    });
}

#[test]
fn a_client_that_closes_before_its_reply_does_not_affect_others() {
    on_every_model(|model, more| {
        let server = hash(model, more);
        for _ in 0..20 {
            send(&mut server.connect(), &(get(20) + &get(20)));
        }
        // New connections reuse their slots and must get their own replies.
        let mut streams: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
        streams.iter_mut().for_each(|stream| send(stream, &get(1)));
        streams.iter_mut().for_each(expect_digest);
    });
}

#[test]
fn a_stop_waits_for_jobs_in_progress() {
    on_every_model(|model, more| {
        let mut server = hash(model, &[more, &["--grace", "60s"]].concat());
        let mut streams = [server.connect(), server.connect()];
        for stream in &mut streams {
            send(stream, &get(1)); // so that it is accepted before the stop
            expect_digest(stream);
            send(stream, &get(300));
        }
        server.signal("-TERM");
        for stream in &mut streams {
            expect_digest(stream);
            expect_end(stream);
        }
        assert_eq!(server.ended().code(), Some(0));
    });
}

#[test]
fn the_file_is_read_for_every_request() {
    on_every_model(|model, more| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let server = hash(model, &[more, &["--file", path.to_str().unwrap()]].concat());
        let mut stream = server.connect();
        send(&mut stream, &(get(1) + &get(20)));
        expect_status(&mut stream, "500 ");
        expect_status(&mut stream, "500 ");
        // FIPS 180-4, examples; and the digest of a megabyte from another implementation.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let zeros = "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58";
        let megabyte = vec![0; 1 << 20];
        for (content, digest) in [(&b"abc"[..], abc), (b"", none), (&megabyte, zeros)] {
            std::fs::write(&path, content).unwrap();
            for n in [1, 9] {
                send(&mut stream, &get(n));
                assert_eq!(reply(&mut stream).1, digest);
            }
        }
        std::fs::write(&path, vec![0; (1 << 20) + 1]).unwrap();
        send(&mut stream, &get(1));
        expect_status(&mut stream, "500 ");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        send(&mut stream, &(get(1) + &get(20)));
        expect_status(&mut stream, "500 ");
        expect_status(&mut stream, "500 ");
    });
}

#[test]
fn options_that_have_no_effect_are_refused() {
    let refused = |args: &[&str], why: &str| {
        let said = crate::support::refused(regatta!("serve").args(args));
        assert!(said.contains(why), "{args:?}: {said}");
    };
    for model in ALONE {
        let why = "its own thread or process";
        refused(&["hash", "--model", model, "--offload", "2"], why);
    }
    refused(&["hello", "--offload", "2"], "leave --offload out");
    refused(&["double", "--file", "x"], "applies only to `serve hash`");
    refused(&["hash", "--by-hand"], "not written by hand");
}

#[test]
fn a_killed_server_leaves_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut server =
        Server::start(regatta!("serve hash").env("TMPDIR", folder.path()).env_remove("HASH_FILE"));
    let mut stream = server.connect();
    send(&mut stream, &get(1));
    expect_digest(&mut stream);
    server.signal("-KILL");
    server.ended();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
