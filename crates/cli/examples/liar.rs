//! A contender that speaks `double`, rightly, and is not what it seems: what the tests of the referee
//! start. `liar PORT honest | warms SECONDS | tires SECONDS`.
//!
//! Each request costs some microseconds of CPU; what changes is how many, and when.

use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::exit,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// When the first request came.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// What a request costs an honest one, beside reading and writing.
const USUAL: Duration = Duration::from_micros(20);

#[derive(Clone, Copy)]
enum Lie {
    /// None.
    Honest,
    /// Like a runtime that compiles while it runs: at first a request costs ten times as much, and less
    /// and less until so many seconds after the first one.
    Warms(f64),
    /// A request costs half as much again from so many seconds after the first one.
    Tires(f64),
}

impl Lie {
    /// What a request costs, so many seconds after the first one.
    fn cost(self, s: f64) -> Duration {
        match self {
            Lie::Warms(over) if s < over => USUAL.mul_f64(1.0 + 9.0 * (1.0 - s / over)),
            Lie::Tires(from) if s >= from => USUAL.mul_f64(1.5),
            _ => USUAL,
        }
    }
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let seconds = |text: &str| text.parse().expect("seconds");
    let (port, lie) = match words[..] {
        [port, "honest"] => (port, Lie::Honest),
        [port, "warms", s] => (port, Lie::Warms(seconds(s))),
        [port, "tires", s] => (port, Lie::Tires(seconds(s))),
        _ => {
            eprintln!("usage: liar PORT honest|warms SECONDS|tires SECONDS");
            exit(2);
        }
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        thread::spawn(move || answer(&stream, lie));
    }
}

/// Answers all lines of a read with one write, until the client leaves.
fn answer(mut stream: &TcpStream, lie: Lie) {
    let mut buffer = vec![0; 64 * 1024];
    let (mut held, mut answers) = (0, Vec::new());
    while let Ok(n @ 1..) = stream.read(&mut buffer[held..]) {
        let filled = held + n;
        let whole = buffer[..filled].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        answers.clear();
        for line in buffer[..whole].split_inclusive(|b| *b == b'\n') {
            let line = str::from_utf8(line).expect("text");
            let asked: i128 = line.trim_end().parse().expect("an integer");
            burn(lie.cost(FIRST.get_or_init(Instant::now).elapsed().as_secs_f64()));
            writeln!(answers, "{}", asked * 2).expect("room for the answer");
        }
        if stream.write_all(&answers).is_err() {
            return;
        }
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
    }
}

fn burn(cost: Duration) {
    let until = Instant::now() + cost;
    while Instant::now() < until {}
}
