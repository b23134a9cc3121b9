//! A contender for the tests of the referee. It speaks `double` and cheats: `liar PORT LIE`, where LIE is one of:
//!
//! - `honest`: does not cheat. `honest 1.5`: a request always costs 1.5 times the usual cost.
//! - `warms S`: behaves like a JIT compiler: a request costs ten times as much at first, and less and
//!   less until S seconds after the first request.
//! - `tires S`: from S seconds after the first request, a request costs 1.5 times as much.
//! - `flatters N`: each of the first N requests costs half as much.
//! - `uneven FACTOR`: in every third start a request costs FACTOR times as much. It counts its starts in
//!   the file `$LIAR_STARTS`.
//! - `spoils-twin FACTOR`: a request costs FACTOR times as much if the contender was started as a twin,
//!   which it reads in the events of the race, `$LIAR_EVENTS`.
//! - `favours`: a request from 127.0.0.1 costs half as much.
//! - `litters`: it has an accomplice, which listens on the socket `$LIAR_ACCOMPLICE` and is notified when
//!   the liar exits.
//! - `hasty`: answers a request before it has received the end of the line.
//! - `adds`: a little after each answer, sends a second, unsolicited one.
//!
//! All answers are correct, except the unsolicited one. The cost of a request is CPU time by the
//! clock of the thread, in addition to reading and writing, so it is the same on every machine.

use rustix::time::{ClockId, clock_gettime};
use std::{
    env,
    fs::{self, OpenOptions},
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    process::exit,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Time of the first request.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// Requests so far, on all connections.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// CPU time that a request costs an honest server, in addition to reading and writing.
const USUAL: Duration = Duration::from_micros(100);

#[derive(Clone, Copy)]
enum Lie {
    /// A request costs this multiple of the usual cost.
    Costs(f64),
    Warms(f64),
    Tires(f64),
    Flatters(u64),
    Favours,
    Hasty,
    Adds,
}

impl Lie {
    /// Returns the cost of the next request as a multiple of the usual cost.
    fn cost(self, is_from_localhost: bool) -> f64 {
        let s = || FIRST.get_or_init(Instant::now).elapsed().as_secs_f64();
        match self {
            Lie::Costs(factor) => factor,
            Lie::Warms(over) => 1.0 + 9.0 * (1.0 - s() / over).max(0.0),
            Lie::Tires(from) if s() >= from => 1.5,
            Lie::Flatters(n) if REQUESTS.fetch_add(1, Relaxed) < n => 0.5,
            Lie::Favours if is_from_localhost => 0.5,
            Lie::Tires(_) | Lie::Flatters(_) | Lie::Favours | Lie::Hasty | Lie::Adds => 1.0,
        }
    }
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().expect("a number");
    // Stays open until the process exits.
    let mut _accomplice = None;
    let (port, lie) = match words[..] {
        [port, "honest"] => (port, Lie::Costs(1.0)),
        [port, "honest", factor] => (port, Lie::Costs(number(factor))),
        [port, "warms", s] => (port, Lie::Warms(number(s))),
        [port, "tires", s] => (port, Lie::Tires(number(s))),
        [port, "flatters", n] => (port, Lie::Flatters(n.parse().expect("a number"))),
        [port, "uneven", factor] => {
            let is_third = nth_start(&setting("LIAR_STARTS")) % 3 == 2;
            (port, Lie::Costs(if is_third { number(factor) } else { 1.0 }))
        }
        [port, "spoils-twin", factor] => {
            (port, Lie::Costs(if is_twin(&setting("LIAR_EVENTS")) { number(factor) } else { 1.0 }))
        }
        [port, "favours"] => (port, Lie::Favours),
        [port, "litters"] => {
            _accomplice =
                Some(UnixStream::connect(setting("LIAR_ACCOMPLICE")).expect("an accomplice"));
            (port, Lie::Costs(1.0))
        }
        [port, "hasty"] => (port, Lie::Hasty),
        [port, "adds"] => (port, Lie::Adds),
        _ => {
            eprintln!("usage: liar PORT LIE; see its source");
            exit(2);
        }
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        thread::spawn(move || answer(&stream, lie));
    }
}

/// Returns an environment variable.
fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Returns the number of earlier starts. The file has one byte for each.
fn nth_start(path: &str) -> usize {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
    let before = file.metadata().expect("a length").len();
    file.write_all(b"s").expect("room for a byte");
    before as usize
}

/// Whether the contender that a race started last, by its events, is a twin.
fn is_twin(path: &str) -> bool {
    let events = fs::read_to_string(path).expect("the events of a race");
    let last = events.rsplit("\"event\":\"round-started\"").next().expect("a part at least");
    // The first name; the start that comes next is named after it.
    let name = last.split("\"contender\":\"").nth(1).and_then(|name| name.split('"').next());
    name.is_some_and(|name| name.ends_with("-twin"))
}

/// Answers all lines of a read with one write, until the client disconnects.
fn answer(mut stream: &TcpStream, lie: Lie) {
    let is_from_localhost = stream.peer_addr().is_ok_and(|peer| peer.ip() == Ipv4Addr::LOCALHOST);
    let mut buffer = vec![0; 64 * 1024];
    let (mut held, mut answers) = (0, Vec::new());
    while let Ok(n @ 1..) = stream.read(&mut buffer[held..]) {
        let filled = held + n;
        let whole = match lie {
            Lie::Hasty => filled,
            _ => buffer[..filled].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1),
        };
        answers.clear();
        for line in buffer[..whole].split_inclusive(|b| *b == b'\n') {
            let line = str::from_utf8(line).expect("text").trim_end();
            if line.is_empty() {
                // The rest of a line that was answered before it arrived.
                continue;
            }
            let asked: i128 = line.parse().expect("an integer");
            burn(USUAL.mul_f64(lie.cost(is_from_localhost)));
            writeln!(answers, "{}", asked * 2).expect("room for the answer");
        }
        if stream.write_all(&answers).is_err() {
            return;
        }
        if matches!(lie, Lie::Adds) && !answers.is_empty() {
            thread::sleep(Duration::from_millis(3));
            if stream.write_all(b"0\n").is_err() {
                return;
            }
        }
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
    }
}

fn burn(cost: Duration) {
    let until = used() + cost;
    while used() < until {}
}

/// Returns the CPU time that this thread has used.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
