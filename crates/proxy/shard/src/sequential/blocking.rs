//! Blocking commands.

use super::session::{LONGEST, Link, Session};
use crate::{clients::blocking::BlockingTime, node::loss_reason::Loss, proxy::unblock};
use regatta_engine::Limits;
use regatta_proto::resp::write_command;
use regatta_service::style::own_connections::ConnectingStream;
use std::{
    io::{self, Read, Write},
    time::Duration,
};

impl<P: Read + Write> Session<'_, P> {
    /// Forwards the reply to a blocking command. Until some of it has arrived, the reply timeout is
    /// longer by the time for which the command may block. The command is ended if the client closes
    /// its sending side, and the wait ends if the shard map changes.
    #[expect(clippy::too_many_arguments, reason = "both connections and their limits")]
    pub(super) fn blocking<T: ConnectingStream<Peer = P>>(
        &mut self,
        node: usize,
        time: BlockingTime,
        out: &mut Vec<u8>,
        stream: &mut T,
        limits: Limits,
    ) -> io::Result<()> {
        let timeout = self.settings().node_timeout;
        self.learn_number(node);
        self.set_read_timeout(node, Limits::LIVENESS_INTERVAL, stream)?;
        let (mut waited, mut is_ending) = (Duration::ZERO, false);
        let mut ends_at = match time {
            BlockingTime::For(limit) => Some(limit + timeout),
            BlockingTime::Forever => None,
        };
        while let Link::Open(link) = &mut self.links[node]
            && link.wait() == Err(Loss::TimedOut)
        {
            waited += Limits::LIVENESS_INTERVAL;
            if stream.has_ended() {
                self.unblock(node, stream)?;
                ends_at = if is_ending { ends_at } else { Some(waited + timeout) };
                is_ending = true;
            }
            if ends_at.is_some_and(|at| waited >= at) {
                self.lose(node, Loss::TimedOut);
            } else if self.shared.newer_map(self.map.epoch()).is_some() {
                self.lose(node, Loss::Moved);
            }
        }
        self.set_read_timeout(node, timeout, stream)?;
        self.whole(node, out, stream, limits)?;
        match is_ending && out.starts_with(unblock::UNBLOCKED) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// Reads the number of the connection at the node, which comes before the reply to its first blocking
    /// command.
    fn learn_number(&mut self, node: usize) {
        let Link::Open(link) = &mut self.links[node] else { return };
        if link.number.is_some() {
            return;
        }
        match link.reply(LONGEST) {
            Ok(reply) => link.number = Some(unblock::number(&reply)),
            Err(loss) => self.lose(node, loss),
        }
    }

    fn set_read_timeout<T: ConnectingStream<Peer = P>>(
        &self,
        node: usize,
        limit: Duration,
        stream: &T,
    ) -> io::Result<()> {
        match &self.links[node] {
            Link::Open(link) => stream.set_read_timeout_of(&link.peer, limit),
            Link::Closed | Link::Lost(_) => Ok(()),
        }
    }

    /// Asks the node to end the blocking command, over another connection. Then it has either replied
    /// already, or it replies with an error and pops nothing.
    ///
    /// # Errors
    /// Returns `ConnectionAborted` if the node cannot be asked.
    fn unblock<T: ConnectingStream<Peer = P>>(&self, node: usize, stream: &T) -> io::Result<()> {
        let number = match &self.links[node] {
            Link::Open(link) => link.number.flatten(),
            Link::Closed | Link::Lost(_) => None,
        };
        let is_asked = || {
            let mut other = self.open(node, stream).ok()?;
            let number = number?.to_string();
            let command = [&b"CLIENT"[..], b"UNBLOCK", number.as_bytes(), b"ERROR"];
            write_command(command, &mut other.out);
            other.send().ok()?;
            other.reply(LONGEST).ok()?.starts_with(b":").then_some(())
        };
        is_asked().ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
    }
}
