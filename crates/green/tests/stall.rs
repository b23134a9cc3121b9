//! After a thread was held up for longer than its timeouts, and at the end of a scheduler.

mod common;

use common::{connect, run};
use regatta_green as green;
use std::{
    cell::Cell,
    io::{Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    time::Duration,
};

/// More sockets than one call of epoll tells of: those that it does not must not be taken for late.
#[test]
fn a_byte_that_is_there_beats_a_timeout_that_has_passed() {
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
        std::thread::sleep(Duration::from_millis(800)); // the whole thread is held up
        green::sleep(Duration::from_millis(50));
        assert_eq!(read.get(), STREAMS);
    });
}

#[test]
fn a_coroutine_that_survives_panics_ends_at_the_shutdown_all_the_same() {
    run(|| {
        let listener = green::TcpListener::bind("127.0.0.1:0").unwrap();
        let survives = move || {
            // As a server does that must not fall over one bad request.
            loop {
                let accepted = catch_unwind(AssertUnwindSafe(|| listener.accept()));
                if let Ok(Err(_)) = accepted {
                    return; // nothing can be waited for any more
                }
            }
        };
        green::spawn(survives).unwrap();
        green::yield_now();
        green::shutdown();
    });
}
