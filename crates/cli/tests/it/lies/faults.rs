//! Which events count as faults of the server, and which do not.

use crate::lies::{
    load,
    server::{Server, double, reset},
};
use std::{
    io::{BufRead, BufReader, Write},
    thread,
    time::Duration,
};

#[test]
fn a_reset_instead_of_the_first_reply_is_a_fault() {
    for shape in [&["-d", "300ms", "--warm-up", "0s"][..], &["-n", "200"]] {
        let server = Server::start(|number, stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while matches!(reader.read_line(&mut line), Ok(1..)) {
                if number == 2 {
                    return reset(&stream);
                }
                if (&stream).write_all(double(line.trim_end()).as_bytes()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        let ended = load(&server.line_url(), &[&["-c", "4"], shape].concat()).with_status(1);
        assert_eq!(ended.line("errors"), "1 failed read", "{}", ended.stdout);
    }
}

/// The first connection keeps sending; the others send one request.
#[test]
fn closing_idle_connections_is_not_a_fault() {
    let server = Server::start(|number, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while matches!(reader.read_line(&mut line), Ok(1..)) {
            if (&stream).write_all(double(line.trim_end()).as_bytes()).is_err() {
                return;
            }
            if number > 0 {
                return thread::sleep(Duration::from_millis(100));
            }
            line.clear();
        }
    });
    let more = ["-c", "1", "--idle", "3", "-d", "600ms", "--warm-up", "0s"];
    let ended = load(&server.line_url(), &more).with_status(0);
    assert!(ended.line("errors").ends_with(" closed idle"), "{}", ended.stdout);
}
