//! A client that reads slowly but steadily gets every reply. A client that reads nothing is closed
//! after the idle timeout, counted from the last byte that its kernel took, not from the last byte
//! that the server wrote to its own socket. Here with short
//! timeouts; `tests/full` has the default ones.

use crate::support::{
    DEADLINE, Server,
    connections::{
        Gets, Lines, Receives, Replies, Sender, at_once, closed_after, read_steadily, turn,
    },
    on_every_model, on_every_shared,
};
use std::{net::Shutdown, time::Duration};

/// Bytes per second of a client that reads steadily.
const RATE: u64 = 300_000;

#[test]
fn a_client_that_reads_steadily_gets_every_reply() {
    let (limit, args) = (Duration::from_secs(2), ["--idle-timeout", "2s"]);
    on_every_model(|model, more| {
        let server = &Server::of("double", model, &[more, &args].concat());
        at_once([Receives::ByDefault, Receives::AtMost(16 * 1024)], |receives| {
            read_steadily(server, receives, Lines, RATE, limit.mul_f64(3.1));
        });
    });
}

/// The same number of bytes per timeout as 15 KB/s under the default limits.
#[test]
fn a_client_that_reads_fifteen_kilobytes_a_second_gets_every_reply() {
    let (limit, args) = (Duration::from_secs(3), ["--idle-timeout", "3s"]);
    on_every_shared(|model| {
        let server = Server::of("hello", model, &args);
        read_steadily(&server, Receives::ByDefault, Gets, RATE, limit.mul_f64(3.1));
    });
}

/// A client that reads 20 KB/s with a receive buffer of a few kilobytes.
#[test]
fn a_client_that_reads_in_tiny_steps_is_not_cut_off() {
    let (limit, args) = (Duration::from_secs(1), ["--idle-timeout", "1s"]);
    on_every_model(|model, more| {
        let server = Server::of("double", model, &[more, &args].concat());
        let turn = turn();
        let stream = server.connect_with(Receives::AtMost(4096));
        let sender = Sender::start(&stream, Lines, usize::MAX); // until the connection is closed
        sender.wait_until_stuck();
        drop(turn);
        Replies::new(&stream, Lines).read_steadily(20_000, 5 * limit);
        stream.shutdown(Shutdown::Both).unwrap();
    });
}

#[test]
fn a_client_that_reads_nothing_is_closed_in_time() {
    let (limit, args) = (Duration::from_secs(3), ["--idle-timeout", "3s"]);
    on_every_model(|model, more| {
        let server = &Server::of("double", model, &[more, &args].concat());
        at_once([Receives::ByDefault, Receives::Little], |receives| {
            let took = closed_after(server, receives, limit, DEADLINE);
            assert!(took >= limit.mul_f64(0.9), "closed after {took:?}, limit {limit:?}");
        });
    });
}
