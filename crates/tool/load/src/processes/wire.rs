//! Messages over pipes: one line of JSON each.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, BufRead, BufReader, Read, Write};

/// Maximum length of a message, in bytes. A workload file with the files that it names is the longest.
const LONGEST: u64 = 256 << 20;

/// Sends one message.
///
/// # Errors
/// If the message cannot be written, e.g. because the other side is gone.
pub fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Receives messages.
pub struct Inbox<R> {
    from: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Inbox<R> {
    /// Receives from a pipe.
    pub fn new(from: R) -> Self {
        Inbox { from: BufReader::new(from), line: Vec::new() }
    }

    /// Waits for the next message. `None`: the other side is gone.
    ///
    /// # Errors
    /// If reading fails, or something other than a message of this type came. The error quotes its start.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.receive_short(LONGEST)
    }

    /// As [`Inbox::receive`], for a message of at most this many bytes.
    ///
    /// # Errors
    /// Also if the message is longer.
    pub fn receive_short<T: DeserializeOwned>(&mut self, longest: u64) -> io::Result<Option<T>> {
        self.line.clear();
        let length = self.from.by_ref().take(longest).read_until(b'\n', &mut self.line)?;
        match self.line.pop() {
            None => return Ok(None),
            Some(b'\n') => {}
            Some(_) if length as u64 == longest => {
                let what = format!("expected a message of less than {longest} bytes, got more");
                return Err(io::Error::other(what));
            }
            Some(_) => return Err(io::Error::other("a message was cut off")),
        }
        serde_json::from_slice(&self.line).map(Some).map_err(|error| {
            let start = String::from_utf8_lossy(&self.line[..self.line.len().min(80)]);
            io::Error::other(format!("expected a message, got {start:?}: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::LeaderCommand;

    #[test]
    fn reads_messages_until_the_other_side_is_gone() {
        let mut wire = Vec::new();
        for order in [LeaderCommand::Connect, LeaderCommand::End] {
            send(&mut wire, &order).unwrap();
        }
        assert_eq!(wire, b"\"connect\"\n\"end\"\n");
        let mut inbox = Inbox::new(wire.as_slice());
        assert_eq!(inbox.receive().unwrap(), Some(LeaderCommand::Connect));
        assert_eq!(inbox.receive().unwrap(), Some(LeaderCommand::End));
        assert_eq!(inbox.receive::<LeaderCommand>().unwrap(), None);
    }

    #[test]
    fn quotes_what_is_not_a_message() {
        let error =
            |bytes: &[u8]| Inbox::new(bytes).receive::<LeaderCommand>().unwrap_err().to_string();
        assert!(error(b"hello\n").starts_with("expected a message, got \"hello\": "));
        assert!(error(b"\"sail\"\n").contains("unknown variant `sail`"));
        assert_eq!(error(b"\"conn"), "a message was cut off");
        let error =
            Inbox::new(&b"\"connect\"\n"[..]).receive_short::<LeaderCommand>(9).unwrap_err();
        assert_eq!(error.to_string(), "expected a message of less than 9 bytes, got more");
    }
}
