//! Forking in a single-threaded process. This file has its own `main`, because the test harness
//! starts threads.

use regatta_sys::fork::{Fork, Forked};
use rustix::process::{WaitOptions, waitpid};
use std::{sync::mpsc, thread};

fn main() {
    let fork = Fork::new().unwrap();
    forks_in_one_thread(&fork);
    does_not_fork_once_a_thread_was_started(&fork);
    println!("forks only a single-threaded process: ok");
}

fn forks_in_one_thread(fork: &Fork) {
    match fork.fork().unwrap() {
        Forked::Child => std::process::exit(7),
        Forked::Parent(child) => {
            let (_, status) = waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
            assert_eq!(status.exit_status(), Some(7));
        }
    }
}

fn does_not_fork_once_a_thread_was_started(fork: &Fork) {
    let (release, waits) = mpsc::channel::<()>();
    let thread = thread::spawn(move || waits.recv());
    match fork.fork() {
        Ok(Forked::Child) => std::process::exit(7),
        Ok(Forked::Parent(_)) => panic!("it forked with two threads"),
        Err(error) => assert_eq!(error.to_string(), "cannot fork a process with 2 threads"),
    }
    assert!(Fork::new().is_err());
    drop(release);
    thread.join().unwrap().unwrap_err();
}
