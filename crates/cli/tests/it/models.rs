//! Behaviour of every I/O model besides answering: limits, timeouts, backpressure, ports, stopping.

use crate::support::{
    DEADLINE, Server, connections::Receives, expect, expect_end, models, on_every_model, regatta,
    run, send_until_stuck, until,
};

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// A race decides `cannot-hold` by the limit in the manifest.
#[test]
fn the_catalogue_and_the_manifests_state_the_same_limits() {
    let manifests = regatta_race::built_in();
    for model in regatta_serve::Model::ALL {
        let same = manifests.iter().find(|c| c.manifest.name == model.name());
        let stated = same.expect("every model has a manifest").manifest.limits.connections;
        assert_eq!(stated, model.traits().limit, "{}", model.name());
    }
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    on_every_model(|model, more| {
        let server = Server::double(model, more);
        let addr = server.addr.to_string();
        let second = run(regatta!("serve double --model {model} --listen {addr}").args(more));
        assert_eq!((second.code(), &*second.stdout), (2, ""));
        let said = second.stderr;
        assert!(said.contains("in use") && said.contains(&addr), "{said}");
    });
}

#[test]
fn a_silent_connection_is_closed_and_an_active_one_is_not() {
    on_every_model(|model, more| {
        let server = Server::double(model, &[more, &["--idle-timeout", "2s"]].concat());
        let (mut silent, mut active) = (server.connect(), server.connect());
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(2_500) {
            active.write_all(b"1\n").unwrap();
            expect(&mut active, b"2\n");
            thread::sleep(Duration::from_millis(50)); // the client's own pace
        }
        expect_end(&mut silent);
    });
}

#[test]
fn a_request_that_arrives_too_slowly_is_cut_off() {
    on_every_model(|model, more| {
        let server = Server::double(model, &[more, &["--request-timeout", "300ms"]].concat());
        let mut stream = server.connect();
        stream.write_all(b"5\n").unwrap();
        expect(&mut stream, b"10\n");
        let started = Instant::now();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        // A byte now and then keeps the connection from being idle, but the request takes too long.
        loop {
            assert!(started.elapsed() < DEADLINE, "never cut off");
            if stream.write_all(b"1").is_err() {
                break;
            }
            match stream.read(&mut [0; 8]) {
                Ok(0) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                Ok(_) => panic!("an answer to half a request"),
            }
        }
        assert!(started.elapsed() >= Duration::from_millis(250), "{:?}", started.elapsed());
    });
}

/// Every read of the server ends inside a line, but each line is complete in time.
#[test]
fn a_client_whose_reads_always_end_inside_a_line_is_not_cut_off() {
    on_every_model(|model, more| {
        let server = Server::double(model, &[more, &["--request-timeout", "2s"]].concat());
        let mut stream = server.connect();
        stream.write_all(b"1").unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(2500) {
            stream.write_all(b"\n1").unwrap();
            expect(&mut stream, b"2\n");
            thread::sleep(Duration::from_millis(20)); // the client's own pace
        }
    });
}

#[test]
fn stops_reading_from_a_client_that_does_not_read_and_loses_no_reply() {
    on_every_model(|model, more| {
        let server = Server::double(model, more);
        let before = server.memory();
        let mut stream = server.connect_with(Receives::Little);
        let mut writer = stream.try_clone().unwrap();
        // Every reply is longer than its request, so the buffers for replies fill first.
        let mut sent = send_until_stuck(&writer, b"x\n");
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 8 << 20, "grew by {grown} bytes");
        // Another client is still served.
        let mut other = server.connect();
        other.write_all(b"4\n").unwrap();
        expect(&mut other, b"8\n");
        // Now the client reads, and gets a reply to each line.
        if sent % 2 == 1 {
            sent += 1;
            thread::spawn(move || writer.write_all(b"\n"));
        }
        let line = b"error: not an integer: x\n";
        let mut left = sent / 2;
        while left > 0 {
            let some = left.min(1000);
            expect(&mut stream, &line.repeat(some));
            left -= some;
        }
        stream.write_all(b"end\n").unwrap();
        expect_end(&mut stream);
    });
}

#[test]
fn connections_beyond_the_limit_wait_until_another_closes() {
    on_every_model(|model, more| {
        let server =
            Server::double(model, &[more, &["--cores", "1", "--max-connections", "2"]].concat());
        let mut streams: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"3\n").unwrap();
        }
        expect(&mut streams[0], b"6\n");
        expect(&mut streams[1], b"6\n");
        streams[2].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let early = streams[2].read(&mut [0; 1]);
        assert!(early.is_err_and(|e| e.kind() == ErrorKind::WouldBlock), "the third must wait");
        drop(streams.remove(0));
        streams[1].set_read_timeout(Some(DEADLINE)).unwrap();
        expect(&mut streams[1], b"6\n");
    });
}

#[test]
fn a_stop_signal_closes_connections_and_exits() {
    on_every_model(|model, more| {
        for signal in ["-TERM", "-INT"] {
            let mut server = Server::double(model, more);
            let (mut idle, mut half_sent) = (server.connect(), server.connect());
            let mut answered = server.connect();
            half_sent.write_all(b"12").unwrap();
            answered.write_all(b"7\n").unwrap();
            expect(&mut answered, b"14\n");
            server.signal(signal);
            expect_end(&mut idle);
            expect_end(&mut half_sent);
            expect_end(&mut answered);
            assert_eq!(server.ended().code(), Some(0));
            assert!(TcpStream::connect(server.addr).is_err(), "the port is still open");
        }
    });
}

#[test]
fn replies_that_are_pending_at_a_stop_are_delivered() {
    on_every_model(|model, more| {
        // A long grace period, because all models share this machine at the same time.
        let mut server = Server::double(model, &[more, &["--grace", "60s"]].concat());
        let mut stream = server.connect();
        // More replies than the socket buffers hold, so some are pending at the stop.
        let lines = 300_000;
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            writer.write_all(&b"x\n".repeat(lines)).and_then(|()| writer.shutdown(Shutdown::Write))
        });
        until("answers come", || stream.peek(&mut [0; 1]).is_ok());
        server.signal("-TERM");
        let mut got = Vec::new();
        // The end is a reset if the client sent more after the server stopped reading.
        if let Err(error) = stream.read_to_end(&mut got) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        let line = b"error: not an integer: x\n";
        assert!(got.len() > 1 << 20, "{} bytes", got.len());
        assert_eq!(got.len() % line.len(), 0, "the last reply is incomplete");
        assert!(got.chunks(line.len()).all(|answer| answer == line));
        // The write fails if the server has not read everything.
        let _ = writing.join().unwrap();
        assert_eq!(server.ended().code(), Some(0));
    });
}

#[test]
fn the_grace_period_is_bounded_and_a_second_signal_exits_at_once() {
    on_every_model(|model, more| {
        for (grace, second) in [("300ms", false), ("1h", true)] {
            let mut server = Server::double(model, &[more, &["--grace", grace]].concat());
            let stream = server.connect();
            let mut writer = stream.try_clone().unwrap();
            // More pending replies than fit, for a client that does not read.
            writer.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
            while writer.write_all(&b"x\n".repeat(8192)).is_ok() {}
            server.signal("-TERM");
            if second {
                until("the port is closed", || TcpStream::connect(server.addr).is_err());
                server.signal("-TERM");
                assert_eq!(server.ended().code(), Some(128 + 15));
            } else {
                assert_eq!(server.ended().code(), Some(0));
            }
        }
    });
}

#[test]
fn the_two_step_dialogue_waits_for_each_name() {
    thread::scope(|scope| {
        for model in models() {
            scope.spawn(move || {
                let server = Server::start(regatta!("serve dialogue --by-hand --model {model}"));
                let mut stream = server.connect();
                for name in ["Ada", "Grace"] {
                    stream.write_all(format!("{name}\r\n").as_bytes()).unwrap();
                    expect(&mut stream, b"last name?\n");
                    stream.write_all(b"\nHopper\n").unwrap();
                    let hello = format!("error: a name is empty\nhello {name} Hopper\n");
                    expect(&mut stream, hello.as_bytes());
                }
                stream.write_all(b"end\n").unwrap();
                expect_end(&mut stream);
            });
        }
    });
}

#[test]
fn requests_that_arrived_in_time_survive_a_stall_of_the_server() {
    on_every_model(|model, more| {
        let server = Server::double(model, &[more, &["--idle-timeout", "2s"]].concat());
        let mut streams: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"4\n").unwrap();
        }
        for stream in &mut streams {
            expect(stream, b"8\n");
        }
        server.signal_all("-STOP");
        for stream in &mut streams {
            stream.write_all(b"21\n").unwrap();
        }
        thread::sleep(Duration::from_millis(2500)); // longer than the idle timeout
        server.signal_all("-CONT");
        for stream in &mut streams {
            expect(stream, b"42\n");
        }
    });
}
