//! Every reply arrives before the connection closes, and the close is not a reset.

use crate::support::{
    Server,
    connections::{Gets, HELLO, Lines, Pipeline, Receives, Replies, STUCK, Sender, unread},
    on_every_model, on_every_shared,
    transcript::server_side::queues_now,
    until,
};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, SocketAddrV4, TcpStream},
    thread,
    time::Instant,
};

/// The client's last request.
const LAST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// Its reply says that the connection closes.
const CLOSES: usize = HELLO.len() + "Connection: close\r\n".len();

/// When the stray byte comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stray {
    /// In the same write as the requests.
    Along,
    /// While the server waits for room to write replies, because the client does not read. If it has
    /// read all requests by then, the byte is still unread when it has written the last reply.
    Later,
}

/// Closing a socket with something unread is a reset, which overtakes the replies (RFC 1122,
/// 4.2.2.13).
#[test]
fn a_stray_byte_after_connection_close_does_not_reset_pending_replies() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        for count in [0, 50, 500, 2000] {
            gets_all_and_the_end(&server, Stray::Along, count);
        }
        // With some of these numbers the socket is full when the server has read the last request.
        let mut met = 0;
        let coarse = (600..=2400).step_by(150);
        let fine = (625..=2400).step_by(50); // where buffers have other sizes today
        for (i, count) in coarse.chain(fine).enumerate() {
            if i < 13 || met == 0 {
                met += usize::from(gets_all_and_the_end(&server, Stray::Later, count));
            }
        }
        assert!(met > 0, "the byte never met a server stuck in its last replies");
    });
}

/// Returns whether the server had read all requests, and waited for room to write replies, when the
/// byte was sent.
fn gets_all_and_the_end(server: &Server, stray: Stray, count: usize) -> bool {
    let mut stream = &server.connect_with(Receives::Little);
    let requests = [&Gets.requests(0, count), LAST].concat();
    let mut is_stuck_in_the_last = false;
    if stray == Stray::Along {
        stream.write_all(&[&requests, &b"x"[..]].concat()).unwrap();
        wait_until_stuck(stream);
    } else {
        stream.write_all(&requests).unwrap();
        wait_until_stuck(stream);
        server.signal_all("-STOP"); // nothing happens between looking and sending
        // A process of an earlier connection may have exited, and its stopped parent cannot reap it.
        until("the server is stopped", || {
            server.processes().iter().all(|(_, stat)| ["T", "Z"].contains(&stat[0].as_str()))
        });
        let queues = queues_now(v4(stream.local_addr().unwrap()), v4(server.addr)).unwrap();
        let written = unread(stream) as usize + queues.unacknowledged as usize;
        // A server that has written everything may have closed already: then the byte is too late.
        let has_more_to_write = written < count * HELLO.len() + CLOSES;
        if has_more_to_write {
            stream.write_all(b"x").unwrap();
            is_stuck_in_the_last = queues.unread == 0;
        }
        server.signal_all("-CONT");
    }
    let mut replies = Replies::new(stream, Gets);
    replies.read_until(count);
    let mut last = Vec::new();
    if let Err(error) = stream.read_to_end(&mut last) {
        panic!("{count} replies came, then {} bytes of the last, and {error}", last.len());
    }
    let last = String::from_utf8(last).unwrap();
    assert!(last.len() == CLOSES && last.contains("\r\nConnection: close\r\n"), "{last}");
    is_stuck_in_the_last
}

fn v4(addr: SocketAddr) -> SocketAddrV4 {
    let SocketAddr::V4(addr) = addr else { panic!("not IPv4: {addr}") };
    addr
}

/// Waits until replies have come, and then no more come.
fn wait_until_stuck(stream: &TcpStream) {
    let (mut came, mut last) = (0, Instant::now());
    until("no more replies come", || {
        let now = unread(stream);
        if now != came {
            (came, last) = (now, Instant::now());
        }
        came > 0 && last.elapsed() > 2 * STUCK
    });
}

#[test]
fn a_client_that_closes_its_side_gets_every_reply_and_then_the_end() {
    on_every_model(|model, more| {
        let server = Server::of("double", model, more);
        thread::scope(|scope| {
            for receives in [Receives::ByDefault, Receives::Little] {
                let stream = server.connect_with(receives);
                scope.spawn(move || closes_its_side(&stream));
            }
        });
    });
}

fn closes_its_side(stream: &TcpStream) {
    let count = 8000;
    let sender = Sender::start(stream, Lines, count);
    let ends = {
        let stream = stream.try_clone().unwrap();
        thread::spawn(move || {
            sender.finish();
            stream.shutdown(Shutdown::Write).unwrap();
        })
    };
    wait_until_stuck(stream); // in sending, or with all sent
    let mut replies = Replies::new(stream, Lines);
    replies.read_until(count);
    ends.join().unwrap();
    replies.expect_end();
}

/// The end of input comes while the server still waits for room for the replies.
#[test]
fn a_client_that_closes_its_side_while_the_server_is_stuck_gets_every_reply() {
    on_every_shared(|model| {
        const REPLIES: usize = 2000;
        let server = Server::of("hello", model, &[]);
        let stream = server.connect_with(Receives::Little);
        (&stream).write_all(&Gets.requests(0, REPLIES)).unwrap();
        wait_until_stuck(&stream);
        stream.shutdown(Shutdown::Write).unwrap();
        let mut replies = Replies::new(&stream, Gets);
        replies.read_until(REPLIES);
        replies.expect_end();
    });
}
