//! A server that closes a connection delivers its last reply, whatever the client still sends, and
//! does not wait forever.

use crate::{
    http::{GET, reply_to, rest},
    support::{DEADLINE, Server, on_every_shared},
};
use std::{
    io::{ErrorKind, Read, Write},
    thread,
    time::{Duration, Instant},
};

/// Refused at its first byte.
const REFUSED: &[u8] = b"\x00";
/// The client's last request, with `Connection: close`.
const LAST: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn a_client_that_keeps_sending_gets_the_reply_and_not_a_reset() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(REFUSED).unwrap();
        // After the reply has arrived, in several pieces.
        stream.peek(&mut [0]).unwrap();
        for _ in 0..64 {
            stream.write_all(&GET.repeat(300)).expect("the server keeps reading");
        }
        let reply = rest(&mut stream);
        assert_eq!(reply.matches("\r\nDate: ").count(), 1, "{reply}");
        assert!(reply.contains("\r\nConnection: close\r\n"), "{reply}");
    });
}

/// A client must not send requests after `Connection: close` (RFC 9112, 9.6), and is reset if it does.
/// The reply that it has received is complete.
#[test]
fn a_client_that_sends_after_connection_close_gets_one_reply() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(LAST.as_bytes()).unwrap();
        stream.peek(&mut [0]).unwrap();
        while stream.write_all(GET).is_ok() {} // until the reset
        let mut reply = Vec::new();
        if let Err(error) = stream.read_to_end(&mut reply) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        let reply = String::from_utf8(reply).unwrap();
        assert_eq!(reply.matches("Hello. The time is").count(), 1, "{reply}");
    });
}

/// Bytes that arrive in the same read as the last request are ignored too.
#[test]
fn no_request_after_the_last_one_is_answered() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        for last in ["GET / HTTP/1.0\r\n\r\n", LAST] {
            let reply = reply_to(&server, &[GET, last.as_bytes(), GET, GET].concat());
            assert_eq!(reply.matches("Hello. The time is").count(), 2, "{reply}");
        }
    });
}

#[test]
fn requests_before_a_half_close_are_answered() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(&[&GET.repeat(3)[..], &GET[..20]].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let replies = rest(&mut stream);
        assert_eq!(replies.matches("Hello. The time is").count(), 3, "{replies}");
    });
}

/// The server closes even if a refused client keeps sending a byte now and then.
#[test]
fn a_closing_connection_does_not_linger_forever() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(REFUSED).unwrap();
        let started = Instant::now();
        while stream.write_all(b"x").is_ok() {
            assert!(started.elapsed() < DEADLINE, "the server still accepts bytes");
            thread::sleep(Duration::from_millis(100)); // the client's own pace
        }
        let mut reply = String::new();
        match stream.read_to_string(&mut reply) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            Ok(_) => assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}"),
        }
    });
}
