//! Mailboxes: one message at a time, senders on the same and on other threads, and `wait`.

use crate::common::{LIMIT, join, listen_and, receive, run};
use green::Wake;
use regatta_green as green;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

#[test]
fn a_message_is_refused_until_the_one_before_it_is_received() {
    run(|| {
        let (mailbox, sender) = green::mailbox();
        assert!(sender.send(1) && !sender.send(2));
        assert_eq!(receive(&mailbox), Some(1));
        assert!(sender.send(3));
        let second = sender.clone();
        drop(sender);
        green::spawn(move || {
            green::sleep(Duration::from_millis(5));
            assert!(second.send(4));
        })
        .unwrap();
        assert_eq!([receive(&mailbox), receive(&mailbox)], [Some(3), Some(4)]);
        assert_eq!(receive(&mailbox), None, "every sender is gone");
    });
}

#[test]
fn recv_until_waits_for_a_message_until_the_deadline() {
    run(|| {
        let (mailbox, sender) = green::mailbox();
        let deadline = Instant::now() + Duration::from_millis(20);
        let error = mailbox.recv_until(deadline).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(Instant::now() >= deadline);
        assert!(sender.send(1));
        assert_eq!(mailbox.recv_until(deadline).unwrap(), 1, "it has already arrived");
        let thread = std::thread::spawn(move || assert!(sender.send(2)));
        assert_eq!(mailbox.recv_until(Instant::now() + LIMIT).unwrap(), 2);
        thread.join().unwrap();
        let error = mailbox.recv_until(Instant::now() + LIMIT).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "every sender is gone");
    });
}

#[test]
fn a_message_to_a_dropped_mailbox_is_refused() {
    run(|| {
        let (mailbox, sender) = green::mailbox();
        drop(mailbox);
        assert!(!sender.send("x"));
    });
}

/// Two threads send as fast as they can, and pause now and then so that the receiver parks.
#[test]
fn no_message_from_another_thread_is_lost() {
    const COUNT: u64 = 20_000;
    run(|| {
        let (mailbox, sender) = green::mailbox();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let end = Instant::now() + LIMIT;
                    for number in 0..COUNT {
                        while !sender.send(number) {
                            assert!(Instant::now() < end);
                            std::thread::yield_now();
                        }
                        if number % 100 == 0 {
                            std::thread::sleep(Duration::from_micros(50));
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        let mut sum = 0;
        while let Some(number) = receive(&mailbox) {
            sum += number;
        }
        assert_eq!(sum, 2 * (COUNT * (COUNT - 1) / 2));
        threads.into_iter().for_each(join);
    });
}

#[test]
fn dropping_the_last_sender_on_another_thread_ends_the_wait() {
    run(|| {
        let (mailbox, sender) = green::mailbox::<()>();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            drop(sender);
        });
        assert_eq!(receive(&mailbox), None);
        join(thread);
    });
}

#[test]
fn wait_reports_which_came_first() {
    run(|| {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let (listener, client) = listen_and(move |mut stream| {
            gone.recv_timeout(LIMIT).unwrap();
            stream.write_all(b"x").unwrap();
            stream.read(&mut [0; 8]).unwrap()
        });
        let (mut stream, _) = listener.accept().unwrap();
        let (mailbox, sender) = green::mailbox();

        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(green::wait(&stream, &mailbox, deadline).unwrap(), Wake::Deadline);
        assert!(Instant::now() >= deadline);
        assert_eq!(green::wait(&stream, &mailbox, deadline).unwrap(), Wake::Deadline);

        let (at_home, far) = (sender.clone(), sender.clone());
        green::spawn(move || assert!(at_home.send("from home"))).unwrap();
        let late = Instant::now() + LIMIT;
        let message = green::wait(&stream, &mailbox, late).unwrap();
        assert_eq!(message, Wake::Message("from home"));
        let thread = std::thread::spawn(move || assert!(far.send("from afar")));
        let message = green::wait(&stream, &mailbox, late).unwrap();
        assert_eq!(message, Wake::Message("from afar"));
        join(thread);

        go.send(()).unwrap();
        assert_eq!(green::wait(&stream, &mailbox, late).unwrap(), Wake::Readable);
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
        // What was read is not readable again.
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(green::wait(&stream, &mailbox, soon).unwrap(), Wake::Deadline);
        drop(stream);
        assert_eq!(join(client), 0);
    });
}

#[test]
fn a_readable_stream_and_a_non_empty_mailbox_alternate() {
    run(|| {
        let (listener, client) = listen_and(|mut stream| stream.write_all(b"xxxxxxxx").unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        join(client);
        stream.wait_readable().unwrap();
        let (mailbox, sender) = green::mailbox();
        assert!(sender.send(0));
        let mut seen = Vec::new();
        for _ in 0..6 {
            match green::wait(&stream, &mailbox, Instant::now() + LIMIT).unwrap() {
                Wake::Message(number) => {
                    seen.push(number);
                    assert!(sender.send(number + 1));
                }
                // One byte at a time leaves it readable.
                _ => seen.push(10 + stream.read(&mut [0]).unwrap()),
            }
        }
        assert_eq!(seen, [0, 11, 1, 11, 2, 11]);
    });
}
