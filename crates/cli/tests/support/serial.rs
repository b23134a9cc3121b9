//! A server whose capacity is known by construction, and `regatta capacity`, which searches it.

use crate::support::{regatta, run};
use regatta_testkit::child::Ended;
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// A server of `double` that handles one request per millisecond over all connections, in order of
/// arrival: with n clients in closed loop every request takes n ms, and the rate cannot exceed 1,000/s.
pub struct Serial {
    pub url: String,
    pub accepted: Arc<AtomicUsize>,
}

const TURN: Duration = Duration::from_millis(1);

impl Serial {
    /// Keeps its rate on a busy machine: a late turn does not delay the next ones.
    pub fn start() -> Serial {
        Serial::catching_up(20)
    }

    /// Never sends a reply sooner than one turn after the previous reply.
    pub fn without_catching_up() -> Serial {
        Serial::catching_up(0)
    }

    /// Makes up for at most this many late turns.
    fn catching_up(most: u32) -> Serial {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("line://{}", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let (queue, requests) = mpsc::channel();
        thread::spawn(move || answer_in_turn(&requests, most));
        let count = Arc::clone(&accepted);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, queue) = (stream.unwrap(), queue.clone());
                count.fetch_add(1, Relaxed);
                thread::spawn(move || enqueue(stream, &queue));
            }
        });
        Serial { url, accepted }
    }
}

fn enqueue(stream: TcpStream, queue: &mpsc::Sender<(TcpStream, i128)>) {
    let _ = stream.set_nodelay(true);
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let Ok(line) = line else { return };
        let number = line.trim_start_matches('+').parse().unwrap();
        queue.send((stream.try_clone().unwrap(), number)).unwrap();
    }
}

fn answer_in_turn(requests: &mpsc::Receiver<(TcpStream, i128)>, most_late: u32) {
    let mut turn = Instant::now();
    for (mut stream, number) in requests {
        turn = match most_late {
            0 => Instant::now() + TURN,
            most => (turn + TURN).max(Instant::now() - most * TURN),
        };
        thread::sleep(turn.saturating_duration_since(Instant::now()));
        // The client may have closed.
        let _ = stream.write_all(format!("{}\n", 2 * number).as_bytes());
    }
}

pub fn command(args: &[&str]) -> Command {
    let mut command = regatta!("capacity");
    command.args(args);
    command
}

pub fn capacity(args: &[&str]) -> Ended {
    run(command(args))
}
