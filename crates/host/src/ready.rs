//! When a contender is ready, and why it is not.

use crate::{
    port::connect,
    running::{Running, SupervisorError},
    status::Status,
    stop_report::{background, last_words},
};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// What shows that a contender is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Ready {
    /// It accepts a connection.
    #[default]
    Tcp,
    /// A GET of this path is answered with a status below 400.
    Http(String),
}

impl TryFrom<String> for Ready {
    type Error = String;

    fn try_from(text: String) -> Result<Ready, String> {
        match text.as_str() {
            "tcp" => Ok(Ready::Tcp),
            path if path.starts_with('/') && !path.contains(|c: char| c <= ' ') => {
                Ok(Ready::Http(text))
            }
            _ => Err(format!("ready is \"tcp\" or a path such as \"/health\", not {text:?}")),
        }
    }
}

impl From<Ready> for String {
    fn from(ready: Ready) -> String {
        match ready {
            Ready::Tcp => "tcp".to_string(),
            Ready::Http(path) => path,
        }
    }
}

/// Why a contender cannot be raced.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// Its process ended.
    #[error("{name} {status} before it was ready{}", last_words(.words))]
    Ended {
        /// Name of the contender.
        name: String,
        /// How.
        status: Status,
        /// Its last output.
        words: String,
    },
    /// It left the foreground.
    #[error("{}", background(.name))]
    Background {
        /// Name of the contender.
        name: String,
    },
    /// The time was over.
    #[error("{name} was not ready within {} s: {seen}", .limit.as_secs_f64())]
    Late {
        /// Name of the contender.
        name: String,
        /// The time it had.
        limit: Duration,
        /// What was seen instead, at the last attempt.
        seen: String,
    },
    /// Of its supervisor.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
}

impl Running {
    /// Waits until the contender is ready; fails at once when its process ends, and after `limit`.
    pub fn wait_ready(&mut self, ready: &Ready, limit: Duration) -> Result<(), NotReady> {
        const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);
        let deadline = Instant::now() + limit;
        loop {
            let answer = attempt(self.port(), ready, deadline);
            // Asked after the attempt: one that answers and leaves the foreground is not ready.
            let pause = if answer.is_ok() { Duration::ZERO } else { BETWEEN_ATTEMPTS };
            self.still_in_foreground(pause)?;
            match answer {
                Ok(()) => return Ok(()),
                Err(seen) if Instant::now() >= deadline => {
                    return Err(NotReady::Late { name: self.name().to_string(), limit, seen });
                }
                Err(_) => {}
            }
        }
    }

    fn still_in_foreground(&mut self, pause: Duration) -> Result<(), NotReady> {
        let (name, port) = (self.name().to_string(), self.port());
        let Some(exited) = self.exited_within(pause)? else { return Ok(()) };
        let goes_on = !exited.left.is_empty() || connect(port, Duration::from_millis(100)).is_ok();
        if exited.status.is_success() && goes_on {
            return Err(NotReady::Background { name });
        }
        Err(NotReady::Ended { name, status: exited.status, words: exited.last_words.clone() })
    }
}

/// One attempt; the error says what was seen.
fn attempt(port: u16, ready: &Ready, deadline: Instant) -> Result<(), String> {
    const LONGEST: Duration = Duration::from_secs(1);
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = left.clamp(Duration::from_millis(10), LONGEST);
    let stream = connect(port, limit).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("nothing accepts on 127.0.0.1:{port}"),
        _ => format!("connecting to 127.0.0.1:{port}: {error}"),
    })?;
    let Ready::Http(path) = ready else { return Ok(()) };
    let told = |error: io::Error| format!("GET {path} on 127.0.0.1:{port}: {error}");
    let line = status_line(stream, path, Instant::now() + limit).map_err(told)?;
    match status_code(&line) {
        Some(200..=399) => Ok(()),
        _ => Err(format!("GET {path} on 127.0.0.1:{port} was answered by {line:?}")),
    }
}

/// Asks for `path` and reads the first line of the answer, at most 256 bytes of it.
fn status_line(mut stream: TcpStream, path: &str, deadline: Instant) -> io::Result<String> {
    const LONGEST: usize = 256;
    let host = stream.peer_addr()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    stream.write_all(request.as_bytes())?;
    let mut line = [0; LONGEST];
    let mut length = 0;
    while length < LONGEST && !line[..length].contains(&b'\n') {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut line[length..])? {
            0 => break,
            n => length += n,
        }
    }
    let line = String::from_utf8_lossy(&line[..length]);
    Ok(line.lines().next().unwrap_or_default().to_string())
}

/// The code of a status line (RFC 9112 section 4).
fn status_code(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_tcp_or_a_path() {
        assert_eq!(Ready::try_from("tcp".to_string()), Ok(Ready::Tcp));
        assert_eq!(Ready::try_from("/up?x=1".to_string()), Ok(Ready::Http("/up?x=1".into())));
        for wrong in ["", "http", "up", "/a b", "/a\r\nb"] {
            assert!(Ready::try_from(wrong.to_string()).unwrap_err().contains("\"tcp\" or a path"));
        }
    }

    #[test]
    fn reads_the_code_of_a_status_line() {
        assert_eq!(status_code("HTTP/1.1 204 No Content"), Some(204));
        assert_eq!(status_code("HTTP/1.0 503"), Some(503));
        assert_eq!(status_code("SSH-2.0-OpenSSH"), None);
    }
}
