//! The null server: what it sends, when it closes, and that its connections do not block each other.

use crate::support::{Server, expect, expect_end, refused, regatta, until};

use regatta_record::Heads;
use regatta_script::{Destination, Workload};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};
use tempfile::TempDir;

fn echo() -> Server {
    Server::of("null", "epoll", &[])
}

/// A null server that sends a reply for each `request_bytes` bytes received.
struct CannedServer {
    server: Server,
    _folder: TempDir,
}

fn reply_file(reply: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("reply");
    std::fs::write(&path, reply).unwrap();
    (folder, path)
}

fn canned(request_bytes: &str, reply: &str, more: &[&str]) -> CannedServer {
    let (folder, path) = reply_file(reply);
    let args = ["--request-bytes", request_bytes, "--reply", path.to_str().unwrap()];
    CannedServer { server: Server::of("null", "epoll", &[&args, more].concat()), _folder: folder }
}

fn ping(stream: &mut TcpStream) {
    stream.write_all(b"ping").unwrap();
    expect(stream, b"ping");
}

#[test]
fn open_connections_stay_fast_when_descriptors_run_out_and_waiting_ones_are_served_later() {
    const PINGS: u32 = 1000;
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_regatta")]);
    let server = Server::start({
        command.args(["serve", "null"]);
        command
    });
    let mut first = server.connect();
    ping(&mut first);
    let mut waiting: Vec<TcpStream> = (0..64).map(|_| server.connect()).collect();
    for stream in &mut waiting {
        stream.write_all(b"x").unwrap();
        stream.set_nonblocking(true).unwrap();
    }
    let is_answered = |stream: &TcpStream| match stream.peek(&mut [0]) {
        Ok(answered) => answered > 0,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    };
    until("descriptors run out", || waiting.iter().filter(|s| is_answered(s)).count() >= 25);
    // A server that sleeps 20 ms in each turn takes 20 s; one that does not takes a tenth of a second.
    let started = Instant::now();
    for _ in 0..PINGS {
        ping(&mut first);
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(waiting.iter().filter(|s| !is_answered(s)).count() >= 20, "too few are still waiting");
    until("all are answered", || {
        waiting.retain(|stream| !is_answered(stream));
        waiting.is_empty()
    });
}

#[test]
fn echoes_its_input_however_much_arrives_at_once() {
    let server = echo();
    let mut stream = server.connect();
    ping(&mut stream);
    server.signal("-STOP");
    let bytes: Vec<u8> = (0..150_000_u32).map(|i| i as u8).collect();
    stream.write_all(&bytes).unwrap();
    server.signal("-CONT");
    let mut came = vec![0; bytes.len()];
    stream.read_exact(&mut came).unwrap();
    assert!(came == bytes);
}

/// The end of input arrives with the last bytes, and no later event reports it.
#[test]
fn an_end_of_input_that_arrives_with_the_last_bytes_closes_the_connection() {
    let server = echo();
    let mut streams: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    streams.iter_mut().for_each(ping);
    server.signal("-STOP");
    for stream in &mut streams {
        stream.write_all(b"last").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    server.signal("-CONT");
    for stream in &mut streams {
        expect(stream, b"last");
        expect_end(stream);
    }
}

#[test]
fn sends_a_canned_reply_for_each_full_length_whatever_the_bytes_are() {
    let null = canned("5", "<reply>", &[]);
    let mut stream = null.server.connect();
    stream.write_all(b"1234").unwrap();
    stream.write_all(b"5").unwrap();
    expect(&mut stream, b"<reply>");
    stream.write_all(&b"\0".repeat(5 * 16 + 3)).unwrap();
    expect(&mut stream, &b"<reply>".repeat(16));
    // More than one read, and more replies than one write sends.
    stream.write_all(&b"\n".repeat(100_002)).unwrap();
    expect(&mut stream, &b"<reply>".repeat(20_001));
    stream.shutdown(Shutdown::Write).unwrap();
    expect_end(&mut stream);
}

#[test]
fn closes_after_a_reply_with_close_after_reply() {
    let null = canned("5", "<reply>", &["--close-after-reply"]);
    for _ in 0..100 {
        let mut stream = null.server.connect();
        stream.write_all(b"12345").unwrap();
        expect(&mut stream, b"<reply>");
        expect_end(&mut stream);
    }
    let null = canned("5", "<reply>", &["--close-after-reply=false"]);
    let mut stream = null.server.connect();
    for _ in 0..2 {
        stream.write_all(b"12345").unwrap();
        expect(&mut stream, b"<reply>");
    }
}

/// The floor of an HTTP race must transfer as many bytes as the other servers.
#[test]
fn the_canned_reply_is_a_reply_of_hello_except_for_the_time() {
    let server = Server::of("hello", "epoll", &[]);
    for closes in [false, true] {
        let connection = if closes { "Connection: close\r\n" } else { "" };
        let host = server.addr.to_string();
        let place = Destination { host: &host, path: None, closes, timeout: None };
        let hello = Workload::parse("hello").unwrap().with_heads(Heads::Identical).unwrap();
        let (_, canned) = hello.canned(place).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n{connection}\r\n", server.addr);
        assert_eq!(canned.request_bytes, request.len());
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut came = vec![0; canned.reply.len()];
        stream.read_exact(&mut came).unwrap();
        let came = String::from_utf8(came).unwrap();
        let without_time = |reply: &str| {
            let is_date = |line: &&str| !line.starts_with("Date: ");
            let lines: Vec<&str> = reply.split("\r\n").filter(is_date).collect();
            lines.join("\r\n").trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
        };
        assert_eq!(without_time(&came), without_time(std::str::from_utf8(&canned.reply).unwrap()));
        if closes {
            expect_end(&mut stream);
        } else {
            stream.set_nonblocking(true).unwrap();
            let more = stream.read(&mut [0]).unwrap_err();
            assert_eq!(more.kind(), ErrorKind::WouldBlock);
        }
    }
}

#[test]
fn invalid_options_are_refused_with_a_clear_error() {
    let (_folder, empty) = reply_file("");
    let empty = empty.to_str().unwrap();
    for (args, said) in [
        (&["null", "--request-bytes", "5"][..], "--reply <PATH>"),
        (&["null", "--close-after-reply"], "--reply <PATH>"),
        (&["null", "--request-bytes", "0", "--reply", empty], "invalid value '0'"),
        (&["null", "--request-bytes", "5", "--reply", empty], "has 0 bytes; expected 1 to"),
        (&["null", "--request-bytes", "5", "--reply", "/no/reply"], "cannot read the reply from"),
        (
            &["hello", "--request-bytes", "5", "--reply", empty],
            "only to `serve null --model epoll`",
        ),
    ] {
        let stderr = refused(regatta!("serve").args(args));
        assert!(stderr.contains(said), "{stderr} should say {said}");
    }
}
