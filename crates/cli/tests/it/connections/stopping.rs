//! A stop closes every connection, including those that wait for a place.

use crate::support::{
    Server,
    connections::{Lines, Receives, Sender, unread},
    on_every_model, until,
};
use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// Slow connections hold all places, and others wait for a place. On a model with several cores, both
/// kinds are usually on each core. After a stop the server exits as soon as the replies are delivered.
/// It does not wait for the connections that never got a place.
#[test]
fn a_stop_while_a_connection_waits_for_a_place() {
    const PLACES: usize = 5;
    on_every_model(|model, more| {
        let places = PLACES.to_string();
        let limits = ["--cores", "2", "--max-connections", &places, "--grace", "60s"];
        let mut server = Server::of("double", model, &[more, &limits].concat());
        let slow = [(); PLACES].map(|()| server.connect_with(Receives::Little));
        let senders = slow.each_ref().map(|stream| {
            // More than the client's buffer holds, so that a delivery is pending at the stop.
            let sender = Sender::start(stream, Lines, 2000);
            until("it has a place", || unread(stream) > 0);
            sender
        });
        senders.into_iter().for_each(Sender::finish);
        let mut waiting: Vec<TcpStream> = (0..8).map(|_| server.connect()).collect();
        // Half of them have sent a request, half are silent.
        waiting.iter_mut().step_by(2).for_each(|stream| stream.write_all(b"4\n").unwrap());
        wait_until_idle(&server);
        server.signal("-TERM");
        until("the port is closed", || TcpStream::connect(server.addr).is_err());
        // The stop is in progress, and the delivery still takes a while.
        for moment in 0.. {
            let mut bytes = [0; 2048];
            let mut read = |mut stream: &TcpStream| stream.read(&mut bytes).unwrap_or(0) > 0;
            // Until the end, or a reset if the server has not read everything.
            if slow.iter().filter(|stream| read(stream)).count() == 0 {
                break;
            }
            if moment < 50 {
                thread::sleep(Duration::from_millis(10)); // the clients' own pace
            }
        }
        assert_eq!(server.ended().code(), Some(0));
    });
}

/// Waits until the server uses no CPU, so that it has accepted what it will accept.
fn wait_until_idle(server: &Server) {
    let (mut used, mut last) = (server.cpu(), Instant::now());
    until("the server is idle", || {
        thread::sleep(Duration::from_millis(10));
        let now = server.cpu();
        if now != used {
            (used, last) = (now, Instant::now());
        }
        last.elapsed() > Duration::from_millis(200)
    });
}
