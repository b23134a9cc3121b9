//! A stack overflow ends the process with a message. Each case runs in a new process of this
//! program, because it must die. Hence there is no test harness.

use regatta_green as green;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CASE: &str = "GREEN_OVERFLOW_CASE";
const OURS: &str = "green: stack overflow in a coroutine: it needed more than the 65536 bytes";

fn main() {
    if let Ok(case) = std::env::var(CASE) {
        die(&case);
        return;
    }
    for (case, signal, message) in [
        ("lightest guard", libc::SIGABRT, OURS),
        ("mprotect guard", libc::SIGABRT, OURS),
        ("no alternate stack yet", libc::SIGABRT, OURS),
        // Other faults reach the previous handler.
        ("std's thread", libc::SIGABRT, "has overflowed its stack"),
        ("bad address", libc::SIGSEGV, ""),
    ] {
        let (status, stderr) = start_again(case);
        assert_eq!(status.signal(), Some(signal), "{case}: {status}, {stderr}");
        assert!(stderr.contains(message), "{case}: {stderr}");
        assert_eq!(stderr.contains(OURS), message == OURS, "{case}: {stderr}");
        println!("test overflow: {case} ... ok");
    }
}

fn start_again(case: &str) -> (std::process::ExitStatus, String) {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program).env(CASE, case).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (status, stderr)
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
