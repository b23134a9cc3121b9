//! A slow way to the broker.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::Duration,
};

/// Bytes that are passed on at once.
const PART: usize = 16 << 10;

/// Returns the port of a way to this port of this machine. What clients send crosses it at this many bytes per second.
pub fn way(to: u16, bytes_per_s: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pause = Duration::from_nanos(PART as u64 * 1_000_000_000 / bytes_per_s);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, broker) =
                (client.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
            let back = (broker.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass_on(client, broker, pause));
            thread::spawn(move || pass_on(back.0, back.1, Duration::ZERO));
        }
    });
    port
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, pause: Duration) {
    let mut part = vec![0; PART];
    while let Ok(n @ 1..) = from.read(&mut part) {
        thread::sleep(pause * n as u32 / PART as u32);
        if to.write_all(&part[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
