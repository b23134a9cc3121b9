//! Streams and listeners against blocking clients on real sockets.

use crate::common::{LIMIT, Random, connect, join, listen, listen_and, run};
use regatta_green as green;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::rc::Rc;
use std::time::{Duration, Instant};

fn echo(mut stream: green::TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            length => stream.write_all(&buffer[..length]).unwrap(),
        }
    }
}

fn end_output(stream: &green::TcpStream) {
    rustix::net::shutdown(stream, rustix::net::Shutdown::Write).unwrap();
}

#[test]
fn many_clients_get_back_what_they_send() {
    run(|| {
        let (listener, address) = listen();
        let clients: Vec<_> = (0..4)
            .map(|thread| {
                std::thread::spawn(move || {
                    let mut random = Random(thread);
                    let mut streams: Vec<_> = (0..50).map(|_| connect(address)).collect();
                    for round in 0..20 {
                        // Sizes below, at and above the server's buffer.
                        let sizes = [1, 100, 4095, 4096, 4097, 20_000];
                        let message = vec![round; sizes[random.below(6) as usize]];
                        for stream in &mut streams {
                            stream.write_all(&message).unwrap();
                        }
                        for stream in &mut streams {
                            let mut answer = vec![0; message.len()];
                            stream.read_exact(&mut answer).unwrap();
                            assert!(answer == message);
                        }
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            let (stream, _) = listener.accept().unwrap();
            green::spawn(move || echo(stream)).unwrap();
        }
        clients.into_iter().for_each(join);
    });
}

#[test]
fn a_coroutine_connects() {
    run(|| {
        let (listener, address) = listen();
        green::spawn(move || echo(listener.accept().unwrap().0)).unwrap();
        let mut stream = green::TcpStream::connect_timeout(address, LIMIT).unwrap();
        stream.write_all(b"hello").unwrap();
        end_output(&stream);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"hello");
    });
}

#[test]
fn a_failed_connect_returns_the_error() {
    run(|| {
        let nobody = regatta_testkit::client::refusing();
        let address = nobody.addr;
        let error = green::TcpStream::connect_timeout(address, LIMIT).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = green::TcpStream::connect_timeout(address, Duration::ZERO).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn an_unanswered_connect_times_out() {
    run(|| {
        // The accept queue of one connection is full: Linux drops further handshakes.
        let listener = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        rustix::net::bind(&listener, &any).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = rustix::net::getsockname(&listener).unwrap().try_into().unwrap();
        let limit = Duration::from_millis(200);
        let mut held = Vec::new();
        let error = loop {
            let begun = Instant::now();
            match green::TcpStream::connect_timeout(address, limit) {
                Ok(stream) => held.push(stream),
                Err(error) => {
                    assert!(begun.elapsed() >= limit);
                    break error;
                }
            }
            assert!(held.len() < 10, "the queue is full");
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn after_half_close_the_other_half_still_works() {
    run(|| {
        let (listener, client) = listen_and(|mut stream| {
            stream.write_all(b"question").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            std::io::read_to_string(stream).unwrap()
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = String::new();
        stream.read_to_string(&mut question).unwrap();
        assert_eq!(question, "question");
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0, "the end of input is reported each time");
        stream.write_all(b"answer").unwrap();
        end_output(&stream);
        assert_eq!(join(client), "answer");
    });
}

#[test]
fn a_reset_wakes_the_reader_with_an_error_and_then_breaks_the_pipe() {
    run(|| {
        let (listener, client) = listen_and(|stream| {
            // A linger time of zero makes the close a reset.
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        let error = stream.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
        assert_eq!(stream.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        join(client);
    });
}

#[test]
fn a_stream_is_usable_after_a_read_timeout() {
    run(|| {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let (listener, client) = listen_and(move |mut stream| {
            gone.recv_timeout(crate::common::LIMIT).unwrap();
            stream.write_all(b"late").unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        let zero = stream.set_read_timeout(Some(Duration::ZERO)).unwrap_err();
        assert_eq!(zero.kind(), ErrorKind::InvalidInput);
        stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        for _ in 0..2 {
            let begin = green::now();
            assert_eq!(stream.read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::TimedOut);
            assert!(begin.elapsed() >= Duration::from_millis(30));
            assert_eq!(stream.wait_readable().unwrap_err().kind(), ErrorKind::TimedOut);
        }
        stream.set_read_timeout(Some(crate::common::LIMIT)).unwrap();
        go.send(()).unwrap();
        stream.wait_readable().unwrap();
        let mut buffer = [0; 10];
        assert_eq!(stream.read(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"late");
        join(client);
    });
}

#[test]
fn a_write_to_a_peer_that_does_not_read_times_out_and_continues_when_it_reads() {
    run(|| {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let (listener, client) = listen_and(move |mut stream| {
            gone.recv_timeout(crate::common::LIMIT).unwrap();
            let mut length = 0;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return length,
                    more => length += more,
                }
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let block = vec![7; 1 << 16];
        let mut sent = 0;
        let error = loop {
            // Far more than two sockets' buffers hold.
            assert!(sent < 1 << 30);
            match stream.write(&block) {
                Ok(length) => sent += length,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        stream.set_write_timeout(Some(crate::common::LIMIT)).unwrap();
        go.send(()).unwrap();
        stream.write_all(&block).unwrap();
        end_output(&stream);
        assert_eq!(join(client), sent + block.len());
    });
}

#[test]
fn an_end_of_input_that_arrived_with_the_data_is_seen_after_a_short_read() {
    run(|| {
        let (listener, client) = listen_and(|mut stream| stream.write_all(b"bye").unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        join(client);
        // Data and end have both arrived, and one event has reported both.
        stream.set_read_timeout(Some(crate::common::LIMIT)).unwrap();
        stream.wait_readable().unwrap();
        assert_eq!(stream.read(&mut [0; 100]).unwrap(), 3);
        assert_eq!(stream.read(&mut [0; 100]).unwrap(), 0);
    });
}

#[test]
fn an_end_of_input_shortly_after_the_data_is_never_missed() {
    run(|| {
        let (listener, address) = listen();
        let client = std::thread::spawn(move || {
            let mut random = Random(1);
            for _ in 0..3000 {
                let mut stream = connect(address);
                stream.write_all(b"bye").unwrap();
                spin(random.below(30));
            }
        });
        let mut random = Random(2);
        for _ in 0..3000 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(crate::common::LIMIT)).unwrap();
            assert_eq!(stream.read(&mut [0; 100]).unwrap(), 3);
            spin(random.below(30));
            assert_eq!(stream.read(&mut [0; 100]).unwrap(), 0);
        }
        join(client);
    });
}

/// A client sends two halves of a request with small gaps, and the server pauses between its reads.
/// So the second half often arrives between the short read and parking.
#[test]
fn data_that_arrives_between_a_short_read_and_parking_is_not_lost() {
    const ROUNDS: usize = 20_000;
    run(|| {
        let (listener, address) = listen();
        let client = std::thread::spawn(move || {
            let mut random = Random(3);
            let mut streams = [connect(address), connect(address)];
            // Fewer rounds must suffice where an idle CPU takes milliseconds to wake.
            let end = Instant::now() + Duration::from_secs(10);
            for _ in (0..ROUNDS / 2).take_while(|_| Instant::now() < end) {
                for stream in &mut streams {
                    stream.write_all(b"a").unwrap();
                    spin(random.below(20));
                    stream.write_all(b"b").unwrap();
                }
                for stream in &mut streams {
                    let mut answer = [0; 2];
                    stream.read_exact(&mut answer).unwrap();
                    assert_eq!(&answer, b"ab");
                }
            }
        });
        for seed in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            green::spawn(move || {
                let mut random = Random(seed);
                let mut buffer = [0; 64];
                loop {
                    let length = stream.read(&mut buffer).unwrap();
                    if length == 0 {
                        return;
                    }
                    stream.write_all(&buffer[..length]).unwrap();
                    spin(random.below(20));
                }
            })
            .unwrap();
        }
        join(client);
    });
}

fn spin(microseconds: u64) {
    let end = Instant::now() + Duration::from_micros(microseconds);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

#[test]
fn one_coroutine_reads_while_another_writes() {
    const LENGTH: usize = 8 << 20;
    run(|| {
        let (listener, client) = listen_and(|stream| {
            let writer = stream.try_clone().unwrap();
            let sent = std::thread::spawn(move || (&writer).write_all(&vec![1; LENGTH]).unwrap());
            let mut received = vec![0; LENGTH];
            (&stream).read_exact(&mut received).unwrap();
            sent.join().unwrap();
            received.iter().all(|&byte| byte == 2)
        });
        let (stream, _) = listener.accept().unwrap();
        let stream = Rc::new(stream);
        let writer = stream.clone();
        green::spawn(move || (&*writer).write_all(&vec![2; LENGTH]).unwrap()).unwrap();
        let mut received = vec![0; LENGTH];
        (&*stream).read_exact(&mut received).unwrap();
        assert!(received.iter().all(|&byte| byte == 1));
        assert!(join(client));
    });
}

#[test]
fn a_second_reader_of_a_stream_gets_an_error() {
    run(|| {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let (listener, client) = listen_and(move |mut stream| {
            gone.recv_timeout(crate::common::LIMIT).unwrap();
            stream.write_all(b"x").unwrap();
        });
        let stream = Rc::new(listener.accept().unwrap().0);
        let first = stream.clone();
        green::spawn(move || assert_eq!((&*first).read(&mut [0; 8]).unwrap(), 1)).unwrap();
        green::yield_now();
        assert_eq!((&*stream).read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ResourceBusy);
        go.send(()).unwrap();
        join(client);
    });
}

#[test]
fn a_peer_that_floods_does_not_starve_the_others() {
    run(|| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (listener, client) = listen_and(move |mut stream| {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                stream.write_all(&[0; 1 << 16]).unwrap();
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        // The buffer is so small that the flood always fills it, and the reader never waits.
        green::spawn(move || while stream.read(&mut [0; 16]).unwrap() > 0 {}).unwrap();
        for _ in 0..20 {
            green::sleep(Duration::from_millis(1));
        }
        stop.send(()).unwrap();
        join(client);
    });
}
