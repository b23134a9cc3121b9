//! Behaviour after a thread was blocked for longer than its timeouts, and at the end of a
//! scheduler.

use crate::common::{connect, run};
use regatta_green as green;
use std::{
    cell::Cell,
    io::{Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    time::Duration,
};

/// There are more sockets than one `epoll_wait` reports. The others must not time out.
#[test]
fn a_byte_that_has_arrived_takes_precedence_over_an_expired_timeout() {
    const STREAMS: usize = 700;
    run(|| {
        let listener = green::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients: Vec<std::net::TcpStream> = Vec::new();
        let read = Rc::new(Cell::new(0));
        for number in 0..STREAMS {
            clients.push(connect(address));
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let read = Rc::clone(&read);
            green::spawn(move || {
                if number % 2 == 0 {
                    stream.wait_readable().unwrap();
                }
                stream.read_exact(&mut [0]).unwrap();
                read.set(read.get() + 1);
            })
            .unwrap();
        }
        green::yield_now(); // all wait
        clients.iter_mut().for_each(|client| client.write_all(b"x").unwrap());
        std::thread::sleep(Duration::from_millis(800)); // the whole thread is blocked
        green::sleep(Duration::from_millis(50));
        assert_eq!(read.get(), STREAMS);
    });
}

#[test]
fn a_coroutine_that_catches_panics_still_ends_at_shutdown() {
    run(|| {
        let listener = green::TcpListener::bind("127.0.0.1:0").unwrap();
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
