//! Mailboxes: order, bounds, senders on the same and on other threads, and `wait`.

use crate::common::{LIMIT, join, listen_and, run};
use green::{SendError, Wake};
use regatta_green as green;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

#[test]
fn messages_arrive_in_order_within_the_bound() {
    run(|| {
        let (mailbox, sender) = green::mailbox(2);
        assert_eq!(mailbox.try_recv(), None);
        assert_eq!(sender.send(1), Ok(()));
        assert_eq!(sender.send(2), Ok(()));
        assert_eq!(sender.send(3), Err(SendError::Full(3)));
        assert_eq!(mailbox.recv(), Some(1));
        assert_eq!(sender.send(4), Ok(()));
        let second = sender.clone();
        drop(sender);
        green::spawn(move || {
            green::sleep(Duration::from_millis(5));
            second.send(5).unwrap();
        })
        .unwrap();
        assert_eq!([mailbox.recv(), mailbox.recv(), mailbox.recv()], [Some(2), Some(4), Some(5)]);
        assert_eq!(mailbox.recv(), None, "every sender is gone");
    });
}

#[test]
fn recv_until_waits_for_a_message_until_the_deadline() {
    run(|| {
        let (mailbox, sender) = green::mailbox(2);
        let deadline = Instant::now() + Duration::from_millis(20);
        let error = mailbox.recv_until(deadline).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(Instant::now() >= deadline);
        sender.send(1).unwrap();
        assert_eq!(mailbox.recv_until(deadline).unwrap(), 1, "it has already arrived");
        let thread = std::thread::spawn(move || sender.send(2).unwrap());
        assert_eq!(mailbox.recv_until(Instant::now() + LIMIT).unwrap(), 2);
        thread.join().unwrap();
        let error = mailbox.recv_until(Instant::now() + LIMIT).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "every sender is gone");
    });
}

#[test]
fn a_message_to_a_dropped_mailbox_is_returned() {
    run(|| {
        let (mailbox, sender) = green::mailbox(2);
        drop(mailbox);
        assert_eq!(sender.send("x"), Err(SendError::Closed("x")));
    });
}

/// Two threads send as fast as they can, and pause now and then so that the receiver parks.
#[test]
fn no_message_from_another_thread_is_lost() {
    const COUNT: u64 = 50_000;
    run(|| {
        let (mailbox, sender) = green::mailbox(64);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let end = Instant::now() + LIMIT;
                    for number in 0..COUNT {
                        while let Err(error) = sender.send(number) {
                            assert_eq!(error, SendError::Full(number));
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
        while let Some(number) = mailbox.recv() {
            sum += number;
        }
        assert_eq!(sum, 2 * (COUNT * (COUNT - 1) / 2));
        threads.into_iter().for_each(join);
    });
}

#[test]
fn dropping_the_last_sender_on_another_thread_ends_the_wait() {
    run(|| {
        let (mailbox, sender) = green::mailbox::<()>(1);
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            drop(sender);
        });
        assert_eq!(mailbox.recv(), None);
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
        let (mailbox, sender) = green::mailbox(4);

        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(green::wait(&stream, &mailbox, Some(deadline)).unwrap(), Wake::Deadline);
        assert!(Instant::now() >= deadline);
        assert_eq!(green::wait(&stream, &mailbox, Some(deadline)).unwrap(), Wake::Deadline);

        let (at_home, far) = (sender.clone(), sender.clone());
        green::spawn(move || at_home.send("from home").unwrap()).unwrap();
        let message = green::wait(&stream, &mailbox, None).unwrap();
        assert_eq!(message, Wake::Message("from home"));
        let thread = std::thread::spawn(move || far.send("from afar").unwrap());
        let message = green::wait(&stream, &mailbox, Some(Instant::now() + LIMIT)).unwrap();
        assert_eq!(message, Wake::Message("from afar"));
        join(thread);

        go.send(()).unwrap();
        assert_eq!(green::wait(&stream, &mailbox, None).unwrap(), Wake::Readable);
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
        // What was read is not readable again.
        let soon = Some(Instant::now() + Duration::from_millis(5));
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
        let (mailbox, sender) = green::mailbox(4);
        (0..3).for_each(|number| sender.send(number).unwrap());
        let mut seen = Vec::new();
        for _ in 0..6 {
            match green::wait(&stream, &mailbox, None).unwrap() {
                Wake::Message(number) => seen.push(number),
                // One byte at a time leaves it readable.
                _ => seen.push(10 + stream.read(&mut [0]).unwrap()),
            }
        }
        assert_eq!(seen, [0, 11, 1, 11, 2, 11]);
    });
}
