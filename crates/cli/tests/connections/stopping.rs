//! A stop ends every connection, also one that has no place yet.

use crate::{
    client::{Lines, Receives, Replies, Sender},
    support::{Server, on_every_model, until},
};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// One connection has the only place, and is slow to take its replies. Others wait for the place,
/// with two cores on either of them. After the stop the server ends with the delivery, and does not
/// wait for those that never had a place.
#[test]
fn a_stop_while_a_connection_waits_for_a_place() {
    on_every_model(|model, more| {
        let limits = ["--cores", "2", "--max-connections", "1", "--grace", "60s"];
        let mut server = Server::double(model, &[more, &limits].concat());
        let mut slow = server.connect_with(Receives::Little);
        let sender = Sender::start(&slow, Lines, usize::MAX);
        sender.wait_until_stuck();
        let mut waiting: Vec<TcpStream> = (0..8).map(|_| server.connect()).collect();
        // Half of them have asked for something, half are silent.
        waiting.iter_mut().step_by(2).for_each(|stream| stream.write_all(b"4\n").unwrap());
        server.signal("-TERM");
        until("the port is closed", || TcpStream::connect(server.addr).is_err());
        // The stop is under way: the delivery goes on for a while.
        Replies::new(&slow, Lines).read_steadily(100_000, Duration::from_millis(500));
        // Up to the end, or the reset of a server that has not read all that was sent.
        let _ = slow.read_to_end(&mut Vec::new());
        assert_eq!(server.ended().code(), Some(0));
    });
}
