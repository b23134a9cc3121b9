//! Every reply arrives before the end, however the connection comes to be closed.

use crate::{
    client::{Gets, HELLO, Lines, Pipeline, Receives, Replies, STUCK, Sender, unread},
    support::{Server, on_every_model, on_every_shared, until},
};
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Instant,
};

/// The client's last request.
const LAST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// Its reply says that the connection closes.
const CLOSES: usize = HELLO.len() + "Connection: close\r\n".len();

/// Replies that fill all buffers between the server and a client that receives little, and of which
/// the requests fit into one read of a server.
const REPLIES: usize = 2000;

/// When the stray byte comes, and how many replies are due before the one that closes.
#[derive(Clone, Copy, Debug)]
enum Stray {
    /// In the same write as the requests.
    Along,
    /// Once the server has read the requests and is stuck in writing the replies: it is unread when
    /// the connection closes.
    Later,
}

/// Closing a socket with something unread is a reset, which overtakes the replies (RFC 1122,
/// 4.2.2.13).
#[test]
fn asked_to_close_after_a_large_reply_with_a_stray_byte_behind() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        thread::scope(|scope| {
            for stray in [Stray::Along, Stray::Later] {
                // The last reply meets a full socket, one with room for a part, and one with room.
                for count in [REPLIES, REPLIES - 150, 500, 50, 0] {
                    let stream = server.connect_with(Receives::Little);
                    let client = move || gets_all_and_the_end(&stream, stray, count);
                    let named = thread::Builder::new().name(format!("{model} {stray:?} {count}"));
                    named.spawn_scoped(scope, client).unwrap();
                }
            }
        });
    });
}

fn gets_all_and_the_end(mut stream: &TcpStream, stray: Stray, count: usize) {
    let requests = [&Gets.requests(0, count), LAST].concat();
    match stray {
        Stray::Along => stream.write_all(&[&requests, &b"x"[..]].concat()).unwrap(),
        Stray::Later => {
            stream.write_all(&requests).unwrap();
            wait_until_stuck(stream);
            stream.write_all(b"x").unwrap();
        }
    }
    wait_until_stuck(stream);
    let mut replies = Replies::new(stream, Gets);
    replies.read_until(count);
    let mut last = Vec::new();
    if let Err(error) = stream.read_to_end(&mut last) {
        panic!("expected the end, but: {error}, after {} of the last reply's bytes", last.len());
    }
    let last = String::from_utf8(last).unwrap();
    assert!(last.len() == CLOSES && last.contains("\r\nConnection: close\r\n"), "{last}");
}

/// Waits until the server has sent something, and nothing more comes.
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
        let server = Server::double(model, more);
        thread::scope(|scope| {
            for receives in [Receives::ByDefault, Receives::Little] {
                let stream = server.connect_with(receives);
                scope.spawn(move || closes_its_side(&stream));
            }
        });
    });
}

fn closes_its_side(stream: &TcpStream) {
    let count = 20_000;
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
