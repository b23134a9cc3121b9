//! A stack overflow ends the process with a message. Each case runs in a new process of this
//! program, because it must die.

use regatta_green as green;
use regatta_testkit::child::run_within;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

const CASE: &str = "GREEN_OVERFLOW_CASE";
const OURS: &str = "green: stack overflow in a coroutine: it needed more than the 65536 bytes";

#[test]
fn on_the_lightest_guard() {
    dies_of("lightest guard", libc::SIGABRT, OURS);
}

#[test]
fn on_an_mprotect_guard() {
    dies_of("mprotect guard", libc::SIGABRT, OURS);
}

#[test]
fn in_a_thread_without_an_alternate_stack() {
    dies_of("no alternate stack yet", libc::SIGABRT, OURS);
}

#[test]
fn an_overflow_outside_of_coroutines_reaches_the_previous_handler() {
    dies_of("std's thread", libc::SIGABRT, "has overflowed its stack");
}

#[test]
fn another_fault_reaches_the_previous_handler() {
    dies_of("bad address", libc::SIGSEGV, "");
}

fn dies_of(case: &str, signal: i32, message: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "overflow::dies", "--ignored", "--nocapture"]).env(CASE, case);
    let ended = run_within(Duration::from_secs(30), command);
    assert_eq!(ended.status.signal(), Some(signal), "{case}: {ended:?}");
    assert!(ended.stderr.contains(message), "{case}: {ended:?}");
    assert_eq!(ended.stderr.contains(OURS), message == OURS, "{case}: {ended:?}");
}

#[test]
#[ignore = "a process of the other tests, which must die"]
fn dies() {
    die(&std::env::var(CASE).expect("started by another test"));
}

fn die(case: &str) {
    let mut config = green::Config::default();
    match case {
        "mprotect guard" => config.guard = green::Guard::Mprotect,
        "no alternate stack yet" => {
            let off = libc::stack_t {
                ss_sp: std::ptr::null_mut(),
                ss_flags: libc::SS_DISABLE,
                ss_size: 0,
            };
            // SAFETY: this thread's signal stack is only disabled, not freed.
            assert_eq!(unsafe { libc::sigaltstack(&raw const off, std::ptr::null_mut()) }, 0);
        }
        _ => {}
    }
    let case = case.to_owned();
    let outcome = green::run(config, move || {
        // A neighbour below, so that a missed overflow would hit something.
        green::spawn(|| green::sleep(Duration::from_secs(30))).unwrap();
        match case.as_str() {
            "std's thread" => {
                let thread = std::thread::spawn(|| recurse(0));
                let _ = thread.join();
            }
            "bad address" => {
                // SAFETY: this is unsound on purpose: address 8 is never mapped, and the test needs
                // the fault.
                unsafe { std::ptr::without_provenance::<u8>(8).read_volatile() };
            }
            _ => green::spawn(|| assert_ne!(recurse(0), 0)).unwrap(),
        }
        green::sleep(Duration::from_secs(30));
    });
    panic!("still alive: {outcome:?}");
}

#[allow(unconditional_recursion)] // that is the point
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 16]);
    recurse(depth + 1) + frame[3]
}
