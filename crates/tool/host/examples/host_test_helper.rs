//! The program that the tests of this crate start: a supervisor, a race to be killed, a server that
//! misbehaves on request, a process that leaves many children, and one that burns CPU.

use regatta_host::{Launch, Ready, Running, supervise};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["supervise"] => return supervise(),
        ["race", launch] => race(launch, |_running| thread::sleep(LONG)),
        ["race-that-stops", launch] => race(launch, |mut running| {
            running.wait_ready(&Ready::Tcp, LONG).expect("it is ready");
            drop(running.stop(LONG));
        }),
        ["serve", port] => serve(port.parse().expect("a port")),
        ["swarm", count] => swarm(count.parse().expect("a number")),
        ["burn", ms] => burn(ms.parse().expect("milliseconds")),
        _ => panic!("unknown arguments {arguments:?}"),
    }
    ExitCode::SUCCESS
}

/// Longer than a test.
const LONG: Duration = Duration::from_secs(60);

/// Starts a contender, prints the processes that must be gone later, and waits to be killed.
fn race(launch: &str, wait: impl FnOnce(Running)) {
    let launch: Launch = serde_json::from_str(launch).expect("a launch");
    let this = std::env::current_exe().expect("own path");
    let running = Running::start(&this, &launch).expect("started");
    let mut pids = vec![running.supervisor_pid()];
    pids.extend(running.processes().iter().map(|process| process.pid));
    let cgroup = running.cgroup().map(|group| group.path().to_path_buf());
    println!("{}", serde_json::to_string(&(pids, cgroup)).expect("JSON"));
    wait(running);
}

/// Runs a server that takes one command per line: burn CPU in various ways, sleep, start idle threads,
/// stop waiting for children, hold memory, or die. Answers the first three GETs with 503, later ones
/// with 200.
fn serve(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let mut gets = 0;
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        for line in BufReader::new(&stream).lines() {
            let Ok(line) = line else { break };
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "GET" {
                gets += 1;
                let status = if gets < 4 { "503 Not Yet" } else { "200 OK" };
                let _ = write!(&stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                break;
            }
            obey(&words, &stream);
        }
    }
}

fn obey(words: &[&str], mut stream: &TcpStream) {
    let number = |i: usize| words[i].parse::<u64>().expect("a number");
    let before = used_ns();
    match words[0] {
        "burn" => burn(number(1)),
        "nap" => thread::sleep(Duration::from_millis(number(1))),
        "threads" => thread::scope(|scope| {
            for _ in 0..number(1) {
                scope.spawn(|| burn(number(2)));
            }
        }),
        "idle" => (0..number(1)).for_each(|_| {
            thread::spawn(|| thread::sleep(Duration::from_secs(600)));
        }),
        // From now on its children are not waited for. A shell cannot do this: dash handles SIGCHLD
        // itself.
        "forget" => {
            // SAFETY: no handler is installed, so nothing runs in a signal.
            let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
            assert_ne!(before, libc::SIG_ERR);
        }
        "children" => {
            let this = std::env::current_exe().expect("own path");
            let start = || Command::new(&this).args(["burn", words[2]]).spawn().expect("a child");
            let children: Vec<_> = (0..number(1)).map(|_| start()).collect();
            for mut child in children {
                // If SIGCHLD is ignored, this waits for the end and then fails.
                let _ = child.wait();
            }
        }
        "orphan" => {
            // The shell ends before its child, which only a reaper further up can then wait for.
            let script = "$HELPER burn $0 &";
            Command::new("sh").args(["-c", script, words[1]]).status().expect("a shell");
        }
        // Never freed, and every page is touched.
        "hold" => drop(vec![1_u8; number(1) as usize].leak()),
        "die" => std::process::exit(number(1) as i32),
        other => panic!("unknown command {other:?}"),
    }
    writeln!(stream, "{}", used_ns() - before).expect("an answer");
}

/// Forks `count` children that never end, and exits.
fn swarm(count: u32) {
    for _ in 0..count {
        // SAFETY: this process has one thread, so its child may go on as it likes.
        match unsafe { libc::fork() } {
            0 => loop {
                thread::sleep(Duration::from_secs(1_000));
            },
            child => assert!(child > 0, "no child: {}", std::io::Error::last_os_error()),
        }
    }
}

/// Burns `ms` of CPU time in this thread.
fn burn(ms: u64) {
    let clock = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let start = clock();
    while clock() - start < (rustix::time::Timespec { tv_sec: 0, tv_nsec: ms as i64 * 1_000_000 }) {
    }
}

/// Returns user plus system time of this process and of the children it waited for.
fn used_ns() -> u64 {
    let of = |who| {
        // SAFETY: a `rusage` of zeros is valid, and the call writes only to it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(who, &mut usage), 0);
            usage
        };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        ns(usage.ru_utime) + ns(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}
