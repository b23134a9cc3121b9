//! A contender for the tests of fairness. It speaks `hash` and sleeps `n` × 1 ms for each request:
//! `slow_hash PORT [blocks | wrong-when-small | wrong-when-large | dies-when-large | caches]`.
//!
//! It has a thread per connection. With `blocks` it still answers only one request at a time. With `caches`
//! it computes the first answer for each `n`, and repeats it for all later requests with that `n`.

use regatta_script::hash_file::HashedFile;
use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::exit,
    sync::{LazyLock, Mutex},
    thread,
    time::Duration,
};

/// Smallest `n` of a large request.
const LARGE: u32 = 10;

/// The cached answer for each `n`.
static KEPT: Mutex<BTreeMap<u32, [u8; 32]>> = Mutex::new(BTreeMap::new());

/// Held during the sleep for a request, with `blocks`.
static TURN: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Good,
    Blocks,
    WrongWhenSmall,
    WrongWhenLarge,
    DiesWhenLarge,
    Caches,
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (port, behaviour) = match words[..] {
        [port] => (port, Behaviour::Good),
        [port, "blocks"] => (port, Behaviour::Blocks),
        [port, "wrong-when-small"] => (port, Behaviour::WrongWhenSmall),
        [port, "wrong-when-large"] => (port, Behaviour::WrongWhenLarge),
        [port, "dies-when-large"] => (port, Behaviour::DiesWhenLarge),
        [port, "caches"] => (port, Behaviour::Caches),
        _ => panic!(
            "usage: slow_hash PORT \
             [blocks|wrong-when-small|wrong-when-large|dies-when-large|caches]"
        ),
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("a free port");
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        thread::spawn(move || answer(&stream, behaviour));
    }
}

/// Answers until the client disconnects.
fn answer(mut stream: &TcpStream, behaviour: Behaviour) {
    stream.set_nodelay(true).expect("a socket takes it");
    let (mut n, mut salt) = (0, String::new());
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if let Some(target) = line.strip_prefix("GET /hash?n=") {
            let (query, _) = target.split_once(' ').expect("a version");
            let (digits, its_salt) = query.split_once("&salt=").unwrap_or((query, ""));
            (n, salt) = (digits.parse().expect("a number"), its_salt.to_owned());
        }
        // The empty line ends a request without a body.
        if line.is_empty() && stream.write_all(reply(n, &salt, behaviour).as_bytes()).is_err() {
            return;
        }
    }
}

fn reply(n: u32, salt: &str, behaviour: Behaviour) -> String {
    let compute = || {
        static FILE: LazyLock<HashedFile> = LazyLock::new(HashedFile::new);
        let turn = (behaviour == Behaviour::Blocks).then(|| TURN.lock().expect("nobody panics"));
        thread::sleep(Duration::from_millis(1) * n);
        drop(turn);
        FILE.digest(salt.as_bytes(), n)
    };
    let mut digest = match behaviour {
        Behaviour::Caches => *KEPT.lock().expect("nobody panics").entry(n).or_insert_with(compute),
        _ => compute(),
    };
    match behaviour {
        Behaviour::DiesWhenLarge if n >= LARGE => exit(3),
        Behaviour::WrongWhenSmall if n < LARGE => digest[0] ^= 1,
        Behaviour::WrongWhenLarge if n >= LARGE => digest[0] ^= 1,
        _ => {}
    }
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{digest}",
        digest.len()
    )
}
