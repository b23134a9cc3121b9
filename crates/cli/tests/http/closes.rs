//! A server that ends a connection delivers its last reply, whatever the client still sends, and
//! does not wait for ever.

use crate::{
    GET, rest,
    support::{DEADLINE, Server, on_every_shared},
    told,
};
use std::{
    io::{ErrorKind, Read, Write},
    thread,
    time::{Duration, Instant},
};

/// Refused at its first byte.
const REFUSED: &[u8] = b"\x00";
/// The client's last request, as it says.
const LAST: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn a_reply_is_not_overtaken_by_a_reset_though_the_client_sends_on() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(REFUSED).unwrap();
        // Behind a reply that has come already, in more pieces than one.
        stream.peek(&mut [0]).unwrap();
        for _ in 0..64 {
            stream.write_all(&GET.repeat(300)).expect("the server reads on");
        }
        let reply = rest(&mut stream);
        assert_eq!(reply.matches("\r\nDate: ").count(), 1, "{reply}");
        assert!(reply.contains("\r\nConnection: close\r\n"), "{reply}");
    });
}

/// It must not send on (RFC 9112, 9.6), and is reset if it does. The reply that it has is whole.
#[test]
fn a_client_that_asked_for_the_end_and_sends_on_has_one_reply() {
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

/// What came in the same read as a request that ends the connection is not interpreted either.
#[test]
fn nothing_behind_the_last_request_is_answered() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        for last in ["GET / HTTP/1.0\r\n\r\n", LAST] {
            let reply = told(&server, &[GET, last.as_bytes(), GET, GET].concat());
            assert_eq!(reply.matches("Hello. The time is").count(), 2, "{reply}");
        }
    });
}

#[test]
fn what_a_client_asked_before_it_ended_its_sending_direction_is_answered() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(&[&GET.repeat(3)[..], &GET[..20]].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let replies = rest(&mut stream);
        assert_eq!(replies.matches("Hello. The time is").count(), 3, "{replies}");
    });
}

/// A client that was refused and sends a byte now and then is let go all the same.
#[test]
fn a_connection_that_was_ended_does_not_linger_for_ever() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let mut stream = server.connect();
        stream.write_all(REFUSED).unwrap();
        let started = Instant::now();
        while stream.write_all(b"x").is_ok() {
            assert!(started.elapsed() < DEADLINE, "it still takes bytes");
            thread::sleep(Duration::from_millis(100)); // the client's own pace
        }
        let mut reply = String::new();
        match stream.read_to_string(&mut reply) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            Ok(_) => assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}"),
        }
    });
}
