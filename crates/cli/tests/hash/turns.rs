//! Who waits for whose jobs.

use crate::{ALONE, expect_digest, get, hash, models, send};
use std::{io::Read, net::TcpStream, thread};

/// Offloaded, a small one that comes while large ones are under way does not wait for them.
#[test]
fn small_ones_overtake_large_ones_of_other_connections() {
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
                // One thread takes ten seconds for three of these, with the CPU's instructions.
                let last = large.last_mut().unwrap();
                last.set_nonblocking(true).unwrap();
                assert!(last.read(&mut [0]).is_err(), "{model}: all are done already");
            });
        }
    });
}

/// Jobs of clients that have gone are not done: at this number of them, that would take minutes.
#[test]
fn who_leaves_long_jobs_behind_keeps_nobody_waiting() {
    const LEAVE: usize = 300;
    const N: u32 = 15_000; // half a second, with the CPU's instructions
    thread::scope(|scope| {
        for model in models().into_iter().filter(|model| !ALONE.contains(model)) {
            scope.spawn(move || {
                let server = hash(model, &["--offload", "1"]);
                for _ in 0..LEAVE {
                    let mut leaves = server.connect();
                    // More than a connection may have under way, so that it is not read on.
                    send(&mut leaves, &(get(1) + &get(N).repeat(100)));
                    // With a reply unread, its close is a reset.
                    leaves.peek(&mut [0]).unwrap();
                }
                let mut stays = server.connect();
                send(&mut stays, &get(50));
                expect_digest(&mut stays);
            });
        }
    });
}

/// Done at once, long ones of one connection take turns with what others ask.
#[test]
fn many_long_ones_of_one_connection_are_no_single_turn() {
    for model in ["select", "poll", "epoll"] {
        let server = hash(model, &[]);
        let (mut many, mut one) = (server.connect(), server.connect());
        send(&mut many, &get(20_000).repeat(16));
        many.peek(&mut [0]).unwrap(); // the first is done
        send(&mut one, &get(1));
        expect_digest(&mut one);
        // All of them take ten seconds, with the CPU's instructions.
        many.set_nonblocking(true).unwrap();
        let mut came = vec![0; 64 * 1024];
        let came = many.read(&mut came).unwrap();
        let a_reply = 150; // bytes, at least
        assert!(came < 10 * a_reply, "{model}: {came} bytes: all are done already");
    }
}
