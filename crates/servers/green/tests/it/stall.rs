//! Behaviour after a thread was blocked for longer than its timeouts, and at the end of a
//! scheduler.

use crate::common::{LIMIT, connect, listen, run};
use regatta_green as green;
use std::{
    cell::Cell,
    io::{Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    time::{Duration, Instant},
};

/// There are more sockets than one `epoll_wait` reports. The others must not time out.
#[test]
fn a_byte_that_has_arrived_takes_precedence_over_an_expired_timeout() {
    const STREAMS: usize = 700;
    run(|| {
        let (listener, address) = listen();
        // All are connected before one waits: on a busy machine that takes longer than the timeout.
        let mut clients: Vec<std::net::TcpStream> = Vec::new();
        let connected: Vec<green::TcpStream> = (0..STREAMS)
            .map(|_| {
                clients.push(connect(address));
                listener.accept().unwrap().0
            })
            .collect();
        let [read, late] = [(); 2].map(|()| Rc::new(Cell::new(0)));
        for (number, mut stream) in connected.into_iter().enumerate() {
            stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let (read, late) = (Rc::clone(&read), Rc::clone(&late));
            green::spawn(move || {
                let waited = if number % 2 == 0 { stream.wait_readable() } else { Ok(()) };
                let outcome = match waited.and_then(|()| stream.read_exact(&mut [0])) {
                    Ok(()) => read,
                    Err(_) => late,
                };
                outcome.set(outcome.get() + 1);
            })
            .unwrap();
        }
        green::yield_now(); // all wait
        clients.iter_mut().for_each(|client| client.write_all(b"x").unwrap());
        std::thread::sleep(Duration::from_millis(800)); // the whole thread is blocked
        let end = Instant::now() + LIMIT / 2;
        while read.get() + late.get() < STREAMS && Instant::now() < end {
            green::sleep(Duration::from_millis(1));
        }
        assert_eq!((read.get(), late.get()), (STREAMS, 0));
    });
}

#[test]
fn a_coroutine_that_catches_panics_still_ends_at_shutdown() {
    run(|| {
        let (listener, _) = listen();
        let survives = move || {
            // Like a server that must survive one bad request.
            loop {
                let accepted = catch_unwind(AssertUnwindSafe(|| listener.accept()));
                if let Ok(Err(_)) = accepted {
                    return; // waiting is no longer possible
                }
            }
        };
        green::spawn(survives).unwrap();
        green::yield_now();
        green::shutdown();
    });
}
