//! Which requests wait for the jobs of others.

use crate::{
    hash::{ALONE, expect_digest, get, hash, models, send},
    support::Server,
};
use std::{io::Read, net::TcpStream, thread};

/// With offloading, a small request does not wait for large ones in progress.
#[test]
fn small_requests_overtake_large_requests_of_other_connections() {
    thread::scope(|scope| {
        for model in models().into_iter().filter(|model| !ALONE.contains(model)) {
            scope.spawn(move || {
                let server = hash(model, &["--offload", "1"]);
                let mut large: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
                large.iter_mut().for_each(|stream| send(stream, &get(100_000)));
                let mut small: Vec<TcpStream> = (0..8).map(|_| server.connect()).collect();
                for _ in 0..5 {
                    small.iter_mut().for_each(|stream| send(stream, &get(1)));
                    small.iter_mut().for_each(expect_digest);
                }
                // One thread takes ten seconds for three of these, with the CPU's SHA instructions.
                let last = large.last_mut().unwrap();
                last.set_nonblocking(true).unwrap();
                assert!(last.read(&mut [0]).is_err(), "{model}: all are done already");
            });
        }
    });
}

/// Jobs of disconnected clients are dropped. This many would take minutes.
#[test]
fn long_jobs_of_disconnected_clients_do_not_delay_others() {
    const LEAVE: usize = 300;
    const N: u32 = 6_000; // 0.2 s, with the CPU's SHA instructions
    thread::scope(|scope| {
        for model in models().into_iter().filter(|model| !ALONE.contains(model)) {
            scope.spawn(move || {
                let server = hash(model, &["--offload", "1"]);
                for _ in 0..LEAVE {
                    let mut leaves = server.connect();
                    // More than a connection may have in progress, so the server stops reading from it.
                    send(&mut leaves, &(get(1) + &get(N).repeat(100)));
                    // A close with an unread reply is a reset.
                    leaves.peek(&mut [0]).unwrap();
                }
                let mut stays = server.connect();
                send(&mut stays, &get(50));
                expect_digest(&mut stays);
            });
        }
    });
}

/// Without offloading, the long requests of one connection take turns with the requests of others: a short one waits
/// for the long one in progress, and at most for one more.
#[test]
fn long_requests_of_one_connection_take_turns_with_other_connections() {
    for model in ["select", "poll", "epoll", "uring"] {
        let server = Server::of("hash", model, &["--cores", "1"]);
        let (mut many, mut one) = (server.connect(), server.connect());
        send(&mut many, &get(20_000).repeat(16));
        many.peek(&mut [0]).unwrap(); // the first is done
        send(&mut one, &get(1));
        expect_digest(&mut one);
        // All of them take ten seconds, with the CPU's SHA instructions.
        many.set_nonblocking(true).unwrap();
        let mut came = vec![0; 64 * 1024];
        let came = many.read(&mut came).unwrap();
        let a_reply = 150; // bytes, at least
        assert!(came < 5 * a_reply, "{model}: {came} bytes: more than four are done already");
    }
}
