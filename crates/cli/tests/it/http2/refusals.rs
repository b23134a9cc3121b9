//! What `--http2` refuses, and clients that do not speak it.

use crate::support::{Server, on_every_shared, regatta};
use std::io::{Read, Write};

/// Runs `regatta serve` with these arguments, which it refuses. Returns why.
fn refused(args: &[&str]) -> String {
    crate::support::refused(regatta!("serve --http2").args(args))
}

#[test]
fn other_services_and_programs_by_hand_are_refused() {
    for service in ["double", "hub", "null", "dialogue"] {
        let why = refused(&[service]);
        assert!(why.contains("--http2 applies only to `serve hello` and `serve hash`"), "{why}");
    }
    let why = refused(&["hello", "--by-hand"]);
    assert!(why.contains("nothing is written by hand over HTTP/2"), "{why}");
}

/// It gets SETTINGS and GOAWAY with PROTOCOL_ERROR.
#[test]
fn a_client_of_http_1_is_refused_on_every_model() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--http2"]);
        let mut stream = server.connect();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all[3], 4, "{model}: {all:?}");
        assert_eq!(all[all.len() - 17..], [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    });
}
