//! Failures that servers must survive, on every I/O model: no free descriptors, clients that vanish or
//! reset at any moment, cores that get unequal shares of the connections.

use crate::support::{Server, expect, on_every_model, regatta, until};

use rustix::net::sockopt::set_socket_linger;
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

#[test]
fn pauses_accepting_without_spinning_when_descriptors_run_out() {
    on_every_model(|model, more| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_regatta")]);
        command.args(["serve", "double", "--cores", "1", "--model", model]).args(more);
        let server = Server::start(command);
        if ["fork", "prefork"].contains(&model) {
            return each_process_has_its_own_descriptors(&server);
        }
        let mut streams: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"3\n").unwrap();
        }
        until("the first are answered", || streams.iter().filter(|s| is_answered(s)).count() >= 10);
        let waiting = streams.iter().filter(|s| !is_answered(s)).count();
        assert!(waiting >= 20, "only {waiting} wait for a descriptor");
        let (cpu, started) = (server.cpu(), Instant::now());
        thread::sleep(Duration::from_millis(500)); // the span over which CPU is measured
        let spent = server.cpu() - cpu;
        assert!(spent * 5 < started.elapsed(), "{spent:?} of CPU while there is nothing to do");
        // Answered connections close, and the others are accepted.
        let mut pending = streams;
        until("all are answered", || {
            pending.retain(|stream| !is_answered(stream));
            pending.is_empty()
        });
    });
}

/// With a process per connection, descriptors do not run out: all connections are answered.
fn each_process_has_its_own_descriptors(server: &Server) {
    let mut streams: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(b"3\n").unwrap();
    }
    for stream in &mut streams {
        expect(stream, b"6\n");
    }
}

/// After a stall, more bytes are waiting than the server's receive buffers can hold (256 KiB on
/// `uring`).
#[test]
fn more_requests_than_fit_the_receive_buffers_are_answered() {
    const LINES: usize = 5000;
    on_every_model(|model, more| {
        let enough = ["--cores", "1", "--max-connections", "128"];
        let server = Server::double(model, &[more, &enough].concat());
        let mut streams: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"4\n").unwrap();
            expect(stream, b"8\n");
        }
        server.signal("-STOP");
        for stream in &mut streams {
            stream.write_all(&b"21\n".repeat(LINES)).unwrap();
        }
        server.signal("-CONT");
        for stream in &mut streams {
            expect(stream, &b"42\n".repeat(LINES));
        }
    });
}

#[test]
fn a_reset_with_unread_answers_does_not_affect_other_connections() {
    on_every_model(|model, more| {
        let server = Server::double(model, more);
        let mut other = server.connect();
        for _ in 0..20 {
            let mut stream = server.connect();
            stream.write_all(&b"1\n".repeat(1000)).unwrap();
            // Closing with answers unread is a reset.
            until("answers wait unread", || stream.peek(&mut [0; 1]).is_ok());
            drop(stream);
            other.write_all(b"2\n").unwrap();
            expect(&mut other, b"4\n");
        }
    });
}

#[test]
fn a_reset_during_a_reply_frees_the_connections_place() {
    on_every_model(|model, more| {
        let server = Server::double(model, &[more, &["--max-connections", "1"]].concat());
        for _ in 0..5 {
            let mut stream = server.connect();
            // More answers than fit, so the server is in the middle of writing them.
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            let stuck = loop {
                if let Err(error) = stream.write_all(&b"x\n".repeat(8192)) {
                    break error;
                }
            };
            assert_eq!(stuck.kind(), ErrorKind::WouldBlock);
            stream.read_exact(&mut [0; 1000]).unwrap();
            set_socket_linger(&stream, Some(Duration::ZERO)).unwrap(); // the close is a reset
            drop(stream);
            let mut next = server.connect();
            next.write_all(b"2\n").unwrap();
            expect(&mut next, b"4\n");
        }
    });
}

/// Drops all packets to the client, as if its machine had disappeared.
fn vanish(stream: &TcpStream) {
    let drop_all = socket2::SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);
    socket2::SockRef::from(stream).attach_filter(&[drop_all]).unwrap();
}

#[test]
fn a_half_open_connection_is_closed_after_its_timeout() {
    on_every_model(|model, more| {
        let limits = ["--max-connections", "1", "--idle-timeout", "1s", "--request-timeout", "1s"];
        let server = Server::double(model, &[more, &limits].concat());
        // Silent; in the middle of a request; with a pending reply; with more replies than fit.
        let big = b"x\n".repeat(300_000);
        for last_words in [&b""[..], b"12", b"7\n", &big] {
            let mut gone = server.connect();
            gone.write_all(b"4\n").unwrap();
            expect(&mut gone, b"8\n");
            vanish(&gone);
            gone.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            // Without acknowledgements not all bytes may be sent.
            let _ = gone.write_all(last_words);
            let mut next = server.connect();
            next.write_all(b"2\n").unwrap();
            expect(&mut next, b"4\n");
            drop((next, gone));
        }
    });
}

#[test]
fn a_stop_does_not_wait_for_a_half_open_connection_beyond_the_grace_period() {
    on_every_model(|model, more| {
        let mut server = Server::double(model, &[more, &["--grace", "300ms"]].concat());
        let mut gone = server.connect();
        gone.write_all(b"4\n").unwrap();
        expect(&mut gone, b"8\n");
        vanish(&gone);
        gone.write_all(b"7\n").unwrap();
        server.signal("-TERM");
        assert_eq!(server.ended().code(), Some(0));
    });
}

/// The kernel spreads connections over cores that share a port by a hash of the addresses: of four
/// connections, one core may get none or all.
#[test]
fn every_connection_is_served_if_cores_get_unequal_shares() {
    on_every_model(|model, more| {
        let limits = ["--cores", "2", "--max-connections", "4"];
        let server = Server::double(model, &[more, &limits].concat());
        for _ in 0..10 {
            let mut streams: Vec<TcpStream> = (0..4).map(|_| server.connect()).collect();
            for stream in &mut streams {
                stream.write_all(b"3\n").unwrap();
            }
            for stream in &mut streams {
                expect(stream, b"6\n");
            }
        }
        // One more than there are places waits until one of them closes.
        let mut streams: Vec<TcpStream> = (0..5).map(|_| server.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"3\n").unwrap();
        }
        let mut open = streams;
        until("all but one are answered", || {
            open.iter().filter(|stream| is_answered(stream)).count() == 4
        });
        let early = Instant::now() + Duration::from_millis(100);
        while Instant::now() < early {
            assert_eq!(open.iter().filter(|stream| is_answered(stream)).count(), 4);
        }
        let waits = open.iter().position(|stream| !is_answered(stream)).unwrap();
        let mut last = open.swap_remove(waits);
        drop(open);
        expect(&mut last, b"6\n");
    });
}

fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let answered = stream.peek(&mut [0; 8]).is_ok();
    stream.set_nonblocking(false).unwrap();
    answered
}

/// SIGHUP is also what a terminal sends when it is closed, and logrotate after a rotation.
#[test]
fn signals_that_request_no_stop_do_not_end_a_server() {
    on_every_model(|model, more| {
        let mut server = Server::start(
            regatta!("serve double --model {model}").args(more).stderr(Stdio::piped()),
        );
        let mut open = server.connect();
        open.write_all(b"3\n").unwrap();
        expect(&mut open, b"6\n");
        for signal in ["-HUP", "-USR2"] {
            server.signal_all(signal);
        }
        server.signal("-USR1");
        let mut stderr = BufReader::new(server.child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("nothing to reload"), "{model}: {line}");
        for stream in [&mut open, &mut server.connect()] {
            stream.write_all(b"4\n").unwrap();
            expect(stream, b"8\n");
        }
        drop(open);
        server.signal("-TERM");
        assert!(server.ended().success(), "{model}");
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        // Each process that receives the signal reports it.
        assert!(rest.lines().all(|line| line.contains("nothing to reload")), "{model}: {rest}");
    });
}

/// Process 1 of a container inherits the processes that others leave behind there.
#[test]
fn a_server_with_processes_outlives_foreign_children() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for model in ["cluster", "prefork", "fork"] {
        // The shell becomes the server, so `cat` is a child of the server.
        let mut command = Command::new("sh");
        command.args(["-c", "cat \"$0\" & exec \"$@\""]).arg(&pipe);
        command.args([env!("CARGO_BIN_EXE_regatta"), "serve", "double", "--model", model]);
        let mut server = Server::start(command);
        let mut open = server.connect();
        open.write_all(b"3\n").unwrap();
        expect(&mut open, b"6\n");
        let cat = || {
            let all = server.processes();
            let is_cat = |pid: u32| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
                name.is_ok_and(|name| name.trim() == "cat")
            };
            all.into_iter().any(|(pid, _)| is_cat(pid))
        };
        until("`cat` has started", cat);
        // It reads until here.
        drop(std::fs::OpenOptions::new().write(true).open(&pipe).unwrap());
        until("the server has reaped it", || !cat());
        open.write_all(b"4\n").unwrap();
        expect(&mut open, b"8\n");
        drop(open);
        server.signal("-TERM");
        assert!(server.ended().success(), "{model}");
    }
}

/// One signal may report the end of several.
#[test]
fn processes_that_end_at_the_same_time_are_all_reaped() {
    let server = Server::double("fork", &[]);
    let mut clients: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.write_all(b"3\n").unwrap();
        expect(client, b"6\n");
    }
    let zombies = || server.processes().iter().filter(|(_, stat)| stat[0] == "Z").count();
    server.signal("-STOP");
    drop(clients);
    until("all have ended", || zombies() == 20);
    server.signal("-CONT");
    until("all are reaped", || zombies() == 0);
}
