//! A contender for the tests of `regatta race`. It speaks `double` and misbehaves as instructed:
//! `ill_behaved PORT [wrong-at N | dies-at N STATUS | deaf | refuses | widens |
//! hoards | drifts FIRST_US LAST_US MS]`.
//!
//! If `ILL_BEHAVED_LOG` is set, it appends `PID listens PORT` to that file, and, if it is `deaf`,
//! `PID asked` when it gets SIGTERM.

use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::{consts::SIGTERM, iterator::Signals};
use std::{
    env,
    fs::OpenOptions,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::exit,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Requests answered so far on all connections.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy)]
enum Behaviour {
    Good,
    /// Makes the n-th answer too large by one.
    WrongAt(u64),
    /// Exits with this status instead of sending the n-th answer.
    DiesAt(u64, i32),
    /// Keeps 16 KiB for each answer, up to 256 MiB.
    Hoards,
    /// Sleeps before each write: at the first one for the first time, and after the third for the second one. In
    /// between the time is multiplied by the same factor in each moment.
    Drifts(Duration, Duration, Duration),
}

/// When the first answer was due.
static BEGAN: OnceLock<Instant> = OnceLock::new();

/// The memory that a hoarder keeps.
static HOARD: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().expect("a number");
    let (port, behaviour) = match words[..] {
        [port] => (port, Behaviour::Good),
        [port, "wrong-at", n] => (port, Behaviour::WrongAt(number(n))),
        [port, "dies-at", n, status] => {
            (port, Behaviour::DiesAt(number(n), status.parse().expect("a status")))
        }
        [port, "deaf"] => {
            ignore_sigterm();
            (port, Behaviour::Good)
        }
        [port, "hoards"] => (port, Behaviour::Hoards),
        [port, "drifts", first, last, ms] => {
            let micros = |text| Duration::from_micros(number(text));
            let within = Duration::from_millis(number(ms));
            (port, Behaviour::Drifts(micros(first), micros(last), within))
        }
        [port, "widens"] => {
            run_anywhere();
            (port, Behaviour::Good)
        }
        [_, "refuses"] => give_up("no licence for this machine", 4),
        _ => give_up(
            "usage: ill_behaved PORT \
             [wrong-at N|dies-at N STATUS|deaf|refuses|widens|hoards|drifts FIRST_US LAST_US MS]",
            2,
        ),
    };
    let listener = match TcpListener::bind(format!("127.0.0.1:{port}")) {
        Ok(listener) => listener,
        Err(error) => give_up(&format!("cannot listen on {port}: {error}"), 1),
    };
    log(&format!("listens {}", listener.local_addr().expect("an address").port()));
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        thread::spawn(move || answer(&stream, behaviour));
    }
}

fn give_up(why: &str, status: i32) -> ! {
    eprintln!("{why}");
    exit(status)
}

/// Lets the process run on every CPU of the machine, whatever its CPU set was.
fn run_anywhere() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    sched_setaffinity(None, &all).expect("other CPUs");
}

fn ignore_sigterm() {
    let mut signals = Signals::new([SIGTERM]).expect("a signal handler");
    thread::spawn(move || signals.forever().for_each(|_| log("asked")));
}

/// Answers all lines of a read with one write, until the client disconnects.
fn answer(mut stream: &TcpStream, behaviour: Behaviour) {
    let mut buffer = vec![0; 64 * 1024];
    let (mut held, mut answers) = (0, Vec::new());
    // A reset also means that the client has disconnected.
    while let Ok(n @ 1..) = stream.read(&mut buffer[held..]) {
        let filled = held + n;
        let whole = buffer[..filled].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        answers.clear();
        for line in buffer[..whole].split_inclusive(|b| *b == b'\n') {
            let line = str::from_utf8(line).expect("text");
            let asked: i128 = line.trim_end().parse().expect("an integer");
            let nth = ANSWERED.fetch_add(1, Relaxed) + 1;
            let surplus = match behaviour {
                Behaviour::WrongAt(n) => i128::from(nth == n),
                Behaviour::DiesAt(n, status) if nth == n => give_up("out of cheese", status),
                Behaviour::Hoards if nth <= 16_384 => {
                    HOARD.lock().expect("a hoard").push(vec![7; 16 * 1024]);
                    0
                }
                _ => 0,
            };
            writeln!(answers, "{}", asked * 2 + surplus).expect("room for the answer");
        }
        if let Behaviour::Drifts(first, last, within) = behaviour {
            let since = BEGAN.get_or_init(Instant::now).elapsed();
            let part = (since.as_secs_f64() / within.as_secs_f64()).min(1.0);
            let factor = last.as_secs_f64() / first.as_secs_f64();
            thread::sleep(first.mul_f64(factor.powf(part)));
        }
        if stream.write_all(&answers).is_err() {
            return;
        }
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
    }
}

fn log(what: &str) {
    let Some(path) = env::var_os("ILL_BEHAVED_LOG") else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a log file");
    // One write per line, because several processes append to the file.
    let line = format!("{} {what}\n", std::process::id());
    file.write_all(line.as_bytes()).expect("a line in the log");
}
