//! Long jobs of some connections and short jobs of others, in one thread.

use crate::support::{Server, connections::unread, models, until};
use regatta_script::hash_file::{self, DIGEST};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

fn get(n: u32) -> String {
    format!("GET /hash?n={n} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// On `uring`. Judged by the order of replies, not by time: when the short request is answered, at least
/// half of the long ones that the server received before it are still pending.
#[test]
fn a_short_job_does_not_wait_for_all_long_jobs_of_other_connections() {
    const LONG: usize = 8;
    for model in models().into_iter().filter(|&model| model == "uring") {
        // A named file, as races use. A ring opens the file without a name that a server makes for
        // itself (below /proc) only on a worker thread, so requests for it arrive late.
        let file = tempfile::NamedTempFile::new().unwrap();
        hash_file::write(file.path()).unwrap();
        let path = file.path().to_str().unwrap();
        let server = Server::of("hash", model, &["--cores", "1", "--file", path]);
        let connect = || {
            let mut stream = server.connect();
            stream.write_all(get(1).as_bytes()).unwrap();
            expect_reply(&mut stream);
            stream
        };
        let (mut short, mut long) = (connect(), Vec::from_iter((0..LONG).map(|_| connect())));
        // The server finds all of them at once.
        server.signal_all("-STOP");
        long.iter_mut().for_each(|stream| stream.write_all(get(5000).as_bytes()).unwrap());
        server.signal_all("-CONT");
        let answered = |long: &[TcpStream]| long.iter().filter(|s| unread(s) > 0).count();
        until("a long one is answered", || answered(&long) > 0);
        short.write_all(get(1).as_bytes()).unwrap();
        expect_reply(&mut short);
        let before = answered(&long);
        // The one seen above, the one in progress, and two because this client may look late.
        assert!(before <= 4, "{model}: {before} of {LONG} long ones were answered before it");
        long.iter_mut().for_each(expect_reply);
    }
}

/// Reads a reply with a digest.
fn expect_reply(stream: &mut TcpStream) {
    let mut reply = Vec::new();
    while !reply.ends_with(DIGEST.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        reply.push(byte[0]);
    }
    assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", reply.escape_ascii());
}
