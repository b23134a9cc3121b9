//! The messages between `race` and its supervisor: JSON, one message per line. The first is the
//! [`Launch`]; then commands go one way and events the other. The channel is a pair of pipes. End of
//! file shows each side that the other is gone.

use crate::{
    contender::{container::Container, stop_report::Stopped},
    group::cgroup::{Cgroup, Containment},
    process::{listed::Listed, status::Status},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::IpAddr,
    path::PathBuf,
};

/// How to start one contender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Name, for messages.
    pub name: String,
    /// Program and arguments, all placeholders filled in.
    pub command: Vec<String>,
    /// Working directory.
    pub dir: PathBuf,
    /// Environment variables in addition to those of `race`.
    pub env: BTreeMap<String, String>,
    /// The address that it must listen on: 127.0.0.1, or that at which a load on another machine reaches it.
    pub host: IpAddr,
    /// Its port.
    pub port: u16,
    /// CPUs that it may run on; empty: all.
    pub cpus: Vec<u32>,
    /// Which control group to put it in.
    pub containment: Containment,
    /// The container that the command runs, if it runs one.
    pub container: Option<Container>,
}

/// A command from `race`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// Send SIGTERM, and SIGKILL to the processes that remain after the grace period.
    Stop { grace_ms: u64 },
}

/// An event from the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
    Started {
        pid: u32,
        cgroup: Option<Cgroup>,
    },
    NotStarted {
        because: String,
    },
    /// The started process ended.
    Exited(Exited),
    /// The last message: no process remains, or the remaining ones are named.
    Stopped(Stopped),
}

/// The end of the started process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// Its status.
    pub status: Status,
    /// Its last output, at most 4 KiB.
    pub last_words: String,
    /// Its descendants that are still running.
    pub left: Listed,
}

/// Writes one message.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Collects bytes as they arrive, and returns whole messages.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Maximum size of a message, in bytes. The longest is a launch with its environment, which is much
    /// shorter.
    const LIMIT: usize = 1 << 20;

    /// Reads once. `Ok(false)`: the other side is gone.
    pub fn fill(&mut self, from: &mut impl Read) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let n = from.read(&mut buffer)?;
        self.bytes.extend_from_slice(&buffer[..n]);
        if self.bytes.len() > Self::LIMIT {
            return Err(io::Error::other("received a message longer than 1 MiB"));
        }
        Ok(n > 0)
    }

    /// Takes the oldest whole message.
    pub fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        serde_json::from_slice(&line).map(Some).map_err(|error| {
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            io::Error::other(format!("expected a message in JSON, got {line:?}: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_even_byte_by_byte() {
        let mut wire = Vec::new();
        send(&mut wire, &Command::Stop { grace_ms: 7 }).unwrap();
        send(&mut wire, &Command::Stop { grace_ms: 8 }).unwrap();
        let mut inbox = Inbox::default();
        let mut graces = Vec::new();
        for byte in wire.chunks(1) {
            assert!(inbox.fill(&mut &*byte).unwrap());
            while let Some(Command::Stop { grace_ms }) = inbox.take().unwrap() {
                graces.push(grace_ms);
            }
        }
        assert_eq!(graces, [7, 8]);
        assert!(!inbox.fill(&mut io::empty()).unwrap());
    }

    #[test]
    fn the_error_quotes_an_invalid_message() {
        let mut inbox = Inbox::default();
        inbox.fill(&mut &b"listening on 80\n"[..]).unwrap();
        let error = inbox.take::<Command>().unwrap_err().to_string();
        assert!(error.contains("\"listening on 80\""), "{error}");
    }
}
