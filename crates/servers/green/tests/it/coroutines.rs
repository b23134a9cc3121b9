//! The lifecycle of coroutines: order, sleep, panics, shutdown, limits.

use crate::common::{LIMIT, join, listen_and, receive, run, run_with};
use regatta_green as green;
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Read, Write};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[test]
fn sleepers_wake_in_order_and_never_early() {
    run(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        for milliseconds in [30, 5, 120, 0, 70] {
            let order = order.clone();
            green::spawn(move || {
                let begin = Instant::now();
                green::sleep(Duration::from_millis(milliseconds));
                assert!(begin.elapsed() >= Duration::from_millis(milliseconds));
                order.borrow_mut().push(milliseconds);
            })
            .unwrap();
        }
        green::sleep(Duration::from_millis(200));
        assert_eq!(*order.borrow(), [0, 5, 30, 70, 120]);
    });
}

#[test]
fn coroutines_take_turns() {
    run(|| {
        let order = Rc::new(RefCell::new(String::new()));
        for name in ['a', 'b', 'c'] {
            let order = order.clone();
            green::spawn(move || {
                for _ in 0..3 {
                    order.borrow_mut().push(name);
                    green::yield_now();
                }
            })
            .unwrap();
        }
        assert_eq!(*order.borrow(), "", "a new coroutine runs when its parent waits");
        (0..4).for_each(|_| green::yield_now());
        assert_eq!(*order.borrow(), "abcabcabc");
    });
}

#[test]
fn now_does_not_change_within_a_turn() {
    run(|| {
        let begin = green::now();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(green::now(), begin);
        green::yield_now();
        assert!(green::now() - begin >= Duration::from_millis(5));
    });
}

/// Counts its drops.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_panic_ends_only_its_coroutine_and_closes_its_socket() {
    run(|| {
        let (listener, client) = listen_and(|mut stream| {
            stream.write_all(b"x").unwrap();
            // The panic drops the server's stream.
            stream.read(&mut [0; 8]).unwrap()
        });
        let (mut stream, _) = listener.accept().unwrap();
        let drops = Arc::new(AtomicU32::new(0));
        let captured = Counted(drops.clone());
        green::spawn(move || {
            let _captured = captured;
            assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
            panic!("meant to happen: this coroutine panics");
        })
        .unwrap();
        assert_eq!(join(client), 0);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_panic_payload_that_panics_when_dropped_is_contained() {
    struct Nasty;
    impl Drop for Nasty {
        fn drop(&mut self) {
            std::panic::panic_any(());
        }
    }
    run(|| {
        green::spawn(|| std::panic::panic_any(Nasty)).unwrap();
        green::yield_now();
        green::yield_now();
    });
}

#[test]
fn a_panic_of_main_is_resumed_after_the_others_have_ended() {
    let ended = Arc::new(AtomicU32::new(0));
    let counted = Counted(ended.clone());
    let outcome = catch_unwind(std::panic::AssertUnwindSafe(|| {
        green::run(green::Config::default(), move || {
            green::spawn(move || {
                green::sleep(Duration::from_millis(10));
                drop(counted);
            })
            .unwrap();
            panic!("meant to happen: main panics");
        })
    }));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"meant to happen: main panics"));
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    // The thread can run another scheduler.
    green::run(green::Config::default(), || ()).unwrap();
}

#[test]
fn shutdown_unwinds_waiting_coroutines_and_drops_those_that_never_ran() {
    let drops = Arc::new(AtomicU32::new(0));
    let in_main = drops.clone();
    run(move || {
        for _ in 0..10 {
            let counted = Counted(in_main.clone());
            green::spawn(move || {
                let _counted = counted;
                green::sleep(LIMIT * 2);
                unreachable!("the scheduler ended first");
            })
            .unwrap();
        }
        green::yield_now();
        let never_ran = Counted(in_main.clone());
        green::spawn(move || drop(never_ran)).unwrap();
        green::shutdown();
        let _main = Counted(in_main);
        green::sleep(LIMIT * 2);
        unreachable!("main is unwound too");
    });
    assert_eq!(drops.load(Ordering::Relaxed), 12);
}

#[test]
fn a_destructor_that_would_wait_while_unwinding_gets_an_error() {
    /// Reads from a peer that never writes.
    struct Waits(green::TcpStream, Arc<AtomicU32>);
    impl Drop for Waits {
        fn drop(&mut self) {
            assert_eq!(self.0.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::Other);
            green::sleep(LIMIT * 2);
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicU32::new(0));
    let seen = drops.clone();
    run(move || {
        let (listener, client) = listen_and(|mut stream| stream.read(&mut [0; 8]).unwrap());
        let waits = Waits(listener.accept().unwrap().0, seen);
        green::spawn(move || {
            let _waits = waits;
            panic!("meant to happen: a panic with a destructor that waits");
        })
        .unwrap();
        assert_eq!(join(client), 0);
    });
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn too_many_coroutines_are_refused_and_freed_slots_are_reused() {
    let config = green::Config { max_coroutines: 3, ..green::Config::default() };
    run_with(config, || {
        let ran = Rc::new(Cell::new(0));
        for _ in 0..5 {
            let count = || {
                let ran = ran.clone();
                move || ran.set(ran.get() + 1)
            };
            green::spawn(count()).unwrap();
            green::spawn(count()).unwrap();
            let error = green::spawn(count()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            green::yield_now();
        }
        assert_eq!(ran.get(), 10);
    });
}

#[test]
fn a_thread_can_run_only_one_scheduler() {
    run(|| {
        let error = green::run(green::Config::default(), || ()).unwrap_err();
        assert!(error.to_string().contains("already runs on this thread"), "{error}");
    });
    let outside = catch_unwind(|| green::sleep(Duration::ZERO)).unwrap_err();
    let message = outside.downcast_ref::<String>().map(String::as_str);
    let message = message.or(outside.downcast_ref::<&str>().copied()).unwrap();
    assert!(message.contains("call this inside green::run"), "{message}");
}

#[test]
fn an_eventfd_wakes_from_another_thread() {
    run(|| {
        let flags = rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC;
        let stop = rustix::event::eventfd(0, flags).unwrap();
        let ring = stop.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            rustix::io::write(&ring, &1_u64.to_ne_bytes()).unwrap();
        });
        green::wait_fd_readable(&stop).unwrap();
        // It is still readable, and can be watched again.
        green::wait_fd_readable(&stop).unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let error = green::wait_fd_readable(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        join(thread);
    });
}

#[test]
fn schedulers_on_several_threads_do_not_interfere() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                run(|| {
                    let (mailbox, sender) = green::mailbox();
                    for number in 0..100 {
                        let sender = sender.clone();
                        green::spawn(move || {
                            green::sleep(Duration::from_millis(number % 5));
                            while !sender.send(number) {
                                green::yield_now();
                            }
                        })
                        .unwrap();
                    }
                    drop(sender);
                    let sum: u64 = std::iter::from_fn(|| receive(&mailbox)).sum();
                    assert_eq!(sum, 4950);
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
