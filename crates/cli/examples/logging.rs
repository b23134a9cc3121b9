//! A contender that speaks `double` and logs the time of each reply. Tests of the measured window compare the
//! printed rate with its log. `logging PORT FOLDER [DELAY]` runs a thread per connection, which waits for
//! DELAY milliseconds before each reply. Each start writes one file when all clients have disconnected: a line
//! per reply, with its Unix time in nanoseconds.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process,
    sync::Mutex,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Times of the replies of closed connections, in nanoseconds since the start.
static SENT: Mutex<Vec<u64>> = Mutex::new(Vec::new());
/// Number of open connections.
static OPEN: Mutex<usize> = Mutex::new(0);

/// Stack size in bytes; enough for a thread that reads and writes lines.
const STACK: usize = 128 << 10;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let (port, folder, delay) = match &args[..] {
        [port, folder] => (port, folder, Duration::ZERO),
        [port, folder, ms] => {
            (port, folder, Duration::from_millis(ms.parse().expect("milliseconds")))
        }
        _ => {
            eprintln!("usage: logging PORT FOLDER [DELAY]");
            process::exit(2);
        }
    };
    // From here on, times are monotonic; this is the Unix time of the start.
    let start = Instant::now();
    let start_ns = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let file = Path::new(folder).join(process::id().to_string());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            *OPEN.lock().unwrap() += 1;
            let answer = || {
                let sent = answer(stream, start, delay);
                let mut all = SENT.lock().unwrap();
                all.extend(sent);
                let mut open = OPEN.lock().unwrap();
                *open -= 1;
                if *open == 0 {
                    let lines = all.iter().map(|ns| format!("{}\n", start_ns + u128::from(*ns)));
                    fs::write(&file, lines.collect::<String>()).expect("the log is written");
                }
            };
            let thread = thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, answer).expect("a thread");
        }
    });
}

/// Answers until the client disconnects, and records when each reply is sent.
fn answer(stream: TcpStream, start: Instant, delay: Duration) -> Vec<u64> {
    let (mut sent, mut line) = (Vec::new(), String::new());
    let mut reader = BufReader::with_capacity(256, &stream);
    while let Ok(1..) = reader.read_line(&mut line) {
        let asked: i128 = line.trim_end().parse().expect("an integer");
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        let reply = format!("{}\n", asked * 2);
        if (&stream).write_all(reply.as_bytes()).is_err() {
            break;
        }
        sent.push(start.elapsed().as_nanos() as u64);
        line.clear();
    }
    sent
}
