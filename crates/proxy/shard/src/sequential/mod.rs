//! The proxy as sequential code, for models with blocking calls. Each client has its own connection
//! to each node.
//!
//! It reads the client's requests, sends them to their nodes, waits for the replies in the order of
//! the requests, and sends those. The engine ([`Proxy`](super::Proxy)) does the same faster,
//! because it sends the requests of many clients in one write. Routing and merging are the same.
//! Commands that need state across requests are refused: transactions and subscriptions.
//!
//! There is no circuit breaker: each client discovers for itself that a node is down. Unread
//! replies are bounded, because writes to the client block, and no further request is read
//! meanwhile.

mod blocking;
mod buffer;
mod node;
mod session;
mod settle;

use crate::{proxy::budget::earned, shared::Shared};
use buffer::Buffer;
use regatta_engine::Limits;
use regatta_proto::resp::Commands;
use regatta_service::style::{
    own_connections::{ConnectingProgram, ConnectingStream},
    sequential::{close_by_client, is_timeout, linger, read_timeout},
};
use session::{Asked, Session};
use std::{io, sync::Arc, time::Instant};

/// Maximum number of pending replies, and of request bytes, before the replies are waited for.
const OWED: usize = 4096;
const ASKED: usize = 1 << 20;

/// The proxy as sequential code.
#[derive(Clone, Debug)]
pub struct Sequential(Arc<Shared>);

impl Sequential {
    /// Creates a proxy without clients.
    pub fn new(shared: Arc<Shared>) -> Self {
        Sequential(shared)
    }
}

impl ConnectingProgram for Sequential {
    fn serve<T: ConnectingStream>(&self, stream: &mut T, limits: Limits) -> io::Result<()> {
        let settings = &self.0.settings;
        let mut session = Session::new(&self.0);
        let mut commands = Commands::new(settings.limits(session.is_trusted()));
        let mut input = Buffer::default();
        // When the request started of which only a part has arrived.
        let mut partial_since = None;
        while read(stream, &mut input, limits, settings.patient, partial_since)? > 0 {
            let before = input.rest().len();
            loop {
                let was_trusted = session.is_trusted();
                match commands.next(input.rest()) {
                    Ok((0, None)) => break,
                    Ok((taken, None)) => input.take(taken),
                    Ok((taken, Some(command))) => match session.ask(&command, stream) {
                        Asked::Owed => input.take(taken),
                        Asked::Blocks => {
                            input.take(taken);
                            session.settle(stream, limits, false)?;
                        }
                        Asked::Later => {
                            session.settle(stream, limits, false)?;
                        }
                        Asked::Last => {
                            input.take(taken);
                            let is_last = input.rest().is_empty();
                            let at_once = session.settle(stream, limits, is_last)?;
                            return close_by_client(stream, at_once && is_last);
                        }
                    },
                    Err(malformed) => {
                        session.fail(&[b"ERR Protocol error: ", &malformed.text()]);
                        session.settle(stream, limits, false)?;
                        return linger(stream);
                    }
                }
                // AUTH, HELLO and RESET change the limits.
                if session.is_trusted() != was_trusted {
                    commands.set_limits(settings.limits(!was_trusted));
                }
                if session.owed.len() >= OWED || session.asked >= ASKED {
                    session.settle(stream, limits, false)?;
                }
            }
            session.settle(stream, limits, false)?;
            let is_next = input.rest().len() < before;
            partial_since = match partial_since {
                _ if input.rest().is_empty() => None,
                Some(since) if !is_next => Some(since),
                _ => Some(stream.now().instant),
            };
        }
        Ok(())
    }
}

/// Waits for input and reads it. Returns 0 at its end. `partial_since`: the start of a request that is
/// incomplete, for the request timeout.
fn read<T: ConnectingStream>(
    stream: &mut T,
    input: &mut Buffer,
    limits: Limits,
    is_patient: bool,
    partial_since: Option<Instant>,
) -> io::Result<usize> {
    let since = stream.now().instant;
    let due = partial_since.map(|since| since + limits.request + earned(input.rest().len()));
    loop {
        match due {
            None => stream.set_read_timeout(read_timeout(limits))?,
            Some(due) => {
                let left = due.checked_duration_since(stream.now().instant);
                let left = left.filter(|left| !left.is_zero()).ok_or(io::ErrorKind::TimedOut)?;
                stream.set_read_timeout(left)?;
            }
        }
        match input.fill(|room| stream.read(room)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => {
                if due.is_none() && !is_patient && stream.now().instant - since >= limits.idle {
                    return Err(error);
                }
            }
            read => return read,
        }
    }
}
