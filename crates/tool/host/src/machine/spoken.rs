//! Finds out what a server speaks that gave no right reply: a user may have raced it with the workload of
//! another protocol. Asks on connections of its own, after the load has ended and failed, so that no
//! measurement is disturbed.

use crate::machine::port::UntilDeadline;
use regatta_script::{Greeting, Workload, dialects::ROWS};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Timeout of each connection, and of each exchange on it.
const WITHIN: Duration = Duration::from_millis(700);

/// Maximum number of bytes of an answer that are read.
const LONGEST: usize = 256;

/// Number of bytes of an unknown answer that are shown.
const SHOWN: usize = 40;

/// Returns what a server speaks that gave no right reply of `workload`, as a sentence; `None` if it speaks
/// the protocol of the workload at this path (if `None`: at a usual one), or accepts no connection.
pub fn look(address: SocketAddr, workload: &Workload, path: Option<&str>) -> Option<String> {
    let own = workload.protocol();
    let host = address.to_string();
    let mut answers = Vec::new();
    for row in ROWS {
        let path = path.filter(|_| row.name == own.name);
        answers.push(ask(address, &(row.greeting.asks)(&host, path))?);
    }
    let is_spoken =
        |greeting: &Greeting| answers.iter().any(|answer| (greeting.is_spoken)(answer.bytes()));
    let spoken: Vec<_> = ROWS.iter().filter(|row| is_spoken(&row.greeting)).collect();
    if is_spoken(&own.greeting) {
        return None;
    }
    let (name, sends) = (workload.name(), (own.greeting.sends)(workload.name()));
    if !spoken.is_empty() {
        let join = |part: fn(&Greeting) -> &'static str, with: &str| {
            spoken.iter().map(|row| part(&row.greeting)).collect::<Vec<_>>().join(with)
        };
        let (named, remedy) = (join(|one| one.named, " and "), join(|one| one.remedy, "; or "));
        return Some(format!(
            "it speaks {named}, but the workload `{name}` sends {sends}: use {remedy}"
        ));
    }
    if answers.iter().any(|answer| is_tls(answer.bytes())) {
        return Some("it speaks TLS, but a race connects without TLS: start it without".to_owned());
    }
    let all = ROWS.iter().map(|row| row.greeting.named).collect::<Vec<_>>().join(", ");
    let asked = format!("the workload `{name}` sends {sends}; regatta also tried {all}");
    let unknown = answers.iter().map(Answer::bytes).find(|bytes| !bytes.is_empty());
    Some(match unknown {
        Some(bytes) => {
            let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
            format!("{asked}: it speaks none of these; an answer of it starts with \"{shown}\"")
        }
        None if answers.contains(&Answer::Closed) => {
            format!("{asked}: it closed connections without an answer")
        }
        None => format!("{asked}: it accepted each connection and answered nothing"),
    })
}

/// How a server reacted to one greeting.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The start of its answer; not empty.
    Bytes(Vec<u8>),
    /// It closed the connection without an answer.
    Closed,
    /// It did neither within the timeout.
    Silent,
}

impl Answer {
    fn bytes(&self) -> &[u8] {
        match self {
            Answer::Bytes(bytes) => bytes,
            Answer::Closed | Answer::Silent => &[],
        }
    }
}

/// Whether an answer is an alert or a handshake record of TLS (RFC 8446, section 5.1).
fn is_tls(answer: &[u8]) -> bool {
    matches!(answer, [0x15 | 0x16, 3, 0..=4, ..])
}

/// Sends a greeting on a new connection and reads the start of the answer: its first line, where there is
/// one. Returns `None` if the server does not accept the connection.
fn ask(address: SocketAddr, asks: &[u8]) -> Option<Answer> {
    let stream = TcpStream::connect_timeout(&address, WITHIN).ok()?;
    let mut stream = UntilDeadline { stream: &stream, deadline: Instant::now() + WITHIN };
    if stream.write_all(asks).is_err() {
        return Some(Answer::Closed);
    }
    let (mut came, mut piece) = (Vec::new(), [0; LONGEST]);
    while came.len() < LONGEST && !came.ends_with(b"\n") {
        match stream.read(&mut piece) {
            Ok(0) if came.is_empty() => return Some(Answer::Closed),
            Ok(0) => break,
            Ok(n) => came.extend_from_slice(&piece[..n.min(LONGEST - came.len())]),
            Err(error) if is_timeout(&error) => break,
            Err(_) if came.is_empty() => return Some(Answer::Closed),
            Err(_) => break,
        }
    }
    Some(if came.is_empty() { Answer::Silent } else { Answer::Bytes(came) })
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
