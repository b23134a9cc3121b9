//! Readiness of a contender, and the reasons why it is not ready.

use crate::{
    contender::{
        running::{Running, SupervisorError},
        stop_report::{background, last_words},
    },
    machine::port::{UntilDeadline, connect},
    process::status::Status,
};
use regatta_script::{Answer, ReadinessProbe, dialects::readiness_probe};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// The sign that a contender is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Ready {
    /// It accepts a connection.
    #[default]
    Tcp,
    /// It answers a request for this path: see [`regatta_script::dialects::readiness_probe`].
    Path(String),
}

impl TryFrom<String> for Ready {
    type Error = String;

    fn try_from(text: String) -> Result<Ready, String> {
        match text.as_str() {
            "tcp" => Ok(Ready::Tcp),
            path if path.starts_with('/') && !path.contains(|c: char| c <= ' ') => {
                Ok(Ready::Path(text))
            }
            _ => Err(format!(
                "`ready` must be \"tcp\" or a path such as \"/health\"; it is {text:?}"
            )),
        }
    }
}

impl From<Ready> for String {
    fn from(ready: Ready) -> String {
        match ready {
            Ready::Tcp => "tcp".to_string(),
            Ready::Path(path) => path,
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
        /// How it ended.
        status: Status,
        /// Its last output.
        words: String,
    },
    /// It put itself into the background.
    #[error("{}", background(.name))]
    Background {
        /// Name of the contender.
        name: String,
    },
    /// It is to be reached from another machine, and cannot be.
    #[error(
        "{name} listens only on 127.0.0.1, and the load comes from another machine: write {{host}} where its command \
         needs its address, e.g. './server {{host}}:{{port}}'"
    )]
    OnlyLocal {
        /// Name of the contender.
        name: String,
    },
    /// It was not ready within the time limit.
    #[error("{name} was not ready within {} s: {seen}", .limit.as_secs_f64())]
    Late {
        /// Name of the contender.
        name: String,
        /// The time limit.
        limit: Duration,
        /// The result of the last attempt.
        seen: String,
    },
    /// An error of its supervisor.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
}

impl Running {
    /// Waits until the contender is ready. Fails when its process ends, and after `limit`.
    pub fn wait_ready(&mut self, ready: &Ready, limit: Duration) -> Result<(), NotReady> {
        const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);
        let deadline = Instant::now() + limit;
        loop {
            let answer = attempt(self.address(), ready, deadline);
            // Checked after the attempt: a contender that answers but moved to the background is not
            // ready.
            let pause = if answer.is_ok() { Duration::ZERO } else { BETWEEN_ATTEMPTS };
            self.still_in_foreground(pause)?;
            if answer.is_err() && self.is_only_local() {
                return Err(NotReady::OnlyLocal { name: self.name().to_string() });
            }
            match answer {
                Ok(()) => return self.find_running_container(),
                Err(seen) if Instant::now() >= deadline => {
                    return Err(NotReady::Late { name: self.name().to_string(), limit, seen });
                }
                Err(_) => {}
            }
        }
    }

    /// Finds its container, if it runs in one. A container that cannot be found may be ending, because another program
    /// answers on its port; then it says why it ended.
    fn find_running_container(&mut self) -> Result<(), NotReady> {
        const ENDS_WITHIN: Duration = Duration::from_secs(1);
        let Err(error) = self.find_container() else { return Ok(()) };
        self.still_in_foreground(ENDS_WITHIN)?;
        Err(NotReady::Supervisor(error))
    }

    /// Whether it accepts connections at 127.0.0.1, and not at the address that it must listen on.
    fn is_only_local(&self) -> bool {
        let (wanted, limit) = (self.address(), Duration::from_millis(100));
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.port()));
        wanted != local && connect(local, limit).is_ok() && connect(wanted, limit).is_err()
    }

    fn still_in_foreground(&mut self, pause: Duration) -> Result<(), NotReady> {
        let name = self.name().to_string();
        let Some(exited) = self.exited_within(pause)? else { return Ok(()) };
        let (is_left, status) = (!exited.left.is_empty(), exited.status);
        let words = exited.last_words.clone();
        let goes_on = is_left || connect(self.address(), Duration::from_millis(100)).is_ok();
        if status.is_success() && goes_on {
            return Err(NotReady::Background { name });
        }
        Err(NotReady::Ended { name, status, words })
    }
}

/// Makes one attempt. The error describes what was seen.
fn attempt(address: SocketAddr, ready: &Ready, deadline: Instant) -> Result<(), String> {
    const LONGEST: Duration = Duration::from_secs(1);
    // On a busy machine, a connection takes longer than the rest of the time may be. The last attempt must show
    // what the contender does, not that it had no time.
    const SHORTEST: Duration = Duration::from_millis(250);
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = left.clamp(SHORTEST, LONGEST);
    let stream = connect(address, limit).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("nothing accepts on {address}"),
        _ => format!("connecting to {address}: {error}"),
    })?;
    let Ready::Path(path) = ready else { return Ok(()) };
    let Some(probe) = readiness_probe(path, &address.to_string()) else { return Ok(()) };
    let what = format!("{} on {address}", probe.what);
    let failed = |error: io::Error| format!("{what}: {error}");
    match ask(&stream, &probe, Instant::now() + limit).map_err(failed)? {
        Answer::NotReady(answer) => Err(format!("{what} was answered by {answer}")),
        Answer::Ready | Answer::Begun => Ok(()),
    }
}

/// Sends the request, and reads as much of the answer as is needed to judge it.
fn ask(stream: &TcpStream, probe: &ReadinessProbe, deadline: Instant) -> io::Result<Answer> {
    let mut stream = UntilDeadline { stream, deadline };
    stream.write_all(&probe.asks)?;
    let mut answer = [0; ReadinessProbe::ANSWER];
    let mut length = 0;
    loop {
        let n = stream.read(&mut answer[length..])?;
        length += n;
        let is_all = n == 0 || length == ReadinessProbe::ANSWER;
        match (probe.answered)(&answer[..length], is_all) {
            Answer::Begun if !is_all => {}
            judged => return Ok(judged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    /// An answer without an end, unless the server closes.
    fn answered(answer: &[u8], is_all: bool) -> Answer {
        let text = String::from_utf8_lossy(answer).into_owned();
        if is_all { Answer::NotReady(text) } else { Answer::Begun }
    }

    #[test]
    fn an_answer_is_judged_when_the_server_closes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 3]).unwrap();
            stream.write_all(b"busy").unwrap();
        });
        let probe = ReadinessProbe { asks: b"up?".into(), what: "up?".into(), answered };
        let stream = TcpStream::connect(address).unwrap();
        let answer = ask(&stream, &probe, Instant::now() + Duration::from_secs(10)).unwrap();
        assert_eq!(answer, Answer::NotReady("busy".into()));
        server.join().unwrap();
    }

    #[test]
    fn ready_is_tcp_or_a_path() {
        assert_eq!(Ready::try_from("tcp".to_string()), Ok(Ready::Tcp));
        assert_eq!(Ready::try_from("/up?x=1".to_string()), Ok(Ready::Path("/up?x=1".into())));
        for wrong in ["", "tcp4", "up", "/a b", "/a\r\nb"] {
            assert!(Ready::try_from(wrong.to_string()).unwrap_err().contains("\"tcp\" or a path"));
        }
    }
}
