//! Lost connections: what is counted, the cause as text, and whether the connection is reopened.

use super::{driver::Driver, state::Worker};
use crate::{
    running::shared::Phase,
    sockets::{
        connection::{Connection, State},
        tls,
    },
};
use regatta_record::Exchange;
use regatta_script::Dialect;
use rustix::io::Errno;
use std::{io, time::Duration};

/// How a connection was lost.
#[derive(Debug)]
pub(super) enum Loss {
    /// Opening it failed.
    Connect(Errno),
    /// Reading failed.
    Read(Errno),
    /// Writing failed.
    Write(Errno),
    /// The server closed it.
    Closed,
    /// A reply timed out.
    TimedOut,
    /// TLS failed.
    Tls(rustls::Error),
    /// It closed without a TLS `close_notify`.
    CutOff,
    /// A reply was wrong, and the bytes after it cannot be parsed.
    Wrong,
}

/// Circumstances of a lost connection.
#[derive(Clone, Copy)]
struct Lost {
    state: State,
    over_tls: bool,
    /// Every request has its reply.
    rests: bool,
    /// It waits for the answer to its Close frame.
    closing: bool,
    timeout: Duration,
}

impl Loss {
    /// The cause as text: what the server did, or the system's error.
    fn in_words(&self, lost: Lost) -> String {
        let Lost { state, over_tls, rests, closing, timeout } = lost;
        let opening = state == State::Connecting;
        match self {
            // Only Unix sockets fail in this way: connect(2).
            Loss::Connect(Errno::AGAIN) => "the server's queue of new connections is full".into(),
            Loss::Connect(errno) | Loss::Read(errno) | Loss::Write(errno) => {
                let said = io::Error::from_raw_os_error(errno.raw_os_error());
                let when = match () {
                    () if closing => " while the answer to a Close frame was pending",
                    () if opening && over_tls => " before the TLS handshake was complete",
                    () if rests => " while no reply was pending",
                    () => "",
                };
                format!("{said}{when}")
            }
            Loss::Closed | Loss::CutOff if opening => {
                "the server closed the connection during the TLS handshake".into()
            }
            Loss::Closed | Loss::CutOff if closing => {
                "the server closed the connection and did not answer a Close frame".into()
            }
            Loss::TimedOut if closing => format!("no answer to a Close frame within {timeout:?}"),
            Loss::Closed if rests => "the server closed the connection between requests, without \
                                      announcing it"
                .into(),
            Loss::Closed if over_tls => "the server ended TLS with close_notify".into(),
            Loss::Closed => "the server closed the connection".into(),
            Loss::CutOff => {
                "the server closed the connection without the close_notify that ends TLS".into()
            }
            Loss::TimedOut if opening && over_tls => format!("no TLS handshake within {timeout:?}"),
            Loss::TimedOut if opening => format!("not connected within {timeout:?}"),
            Loss::TimedOut => format!("no reply within {timeout:?}"),
            Loss::Tls(error) => tls::explain(error, false),
            Loss::Wrong => "a reply was wrong, so the bytes after it cannot be parsed".into(),
        }
    }
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Counts the requests lost with a connection, and the pushed messages that the server owed on it, and
    /// reopens it after a pause, unless the window is over. In a burst, it is reopened only if nothing was
    /// written yet; otherwise its unsent requests are lost too.
    pub(super) fn lost(&mut self, slot: u32, loss: Loss) {
        let undelivered = self.undelivered(slot);
        if !self.replies_at_rest.is_empty() && self.was_closed_at_rest(slot, &loss) {
            return self.send_again(slot);
        }
        let connection = &self.connections[slot as usize];
        let (state, owed) = (connection.state, u64::from(connection.cursor.owed()));
        let unsent = match state {
            State::Connecting => 0,
            _ => u64::from(self.drive.gives_up(slot)),
        };
        self.left -= unsent;
        self.settled += unsent;
        // A pending answer to a Close frame counts like a reply.
        let closing = self.passing.is_closing(slot);
        let lost = owed + unsent + u64::from(closing);
        let failed = lost + undelivered;
        // The close of a connection that sends nothing more is not an error.
        let is_through = V::ENDS_CONNECTIONS || self.phase > Phase::Measuring;
        let is_wrong = matches!(loss, Loss::Wrong);
        if failed == 0 && is_through && state != State::Connecting && !is_wrong {
            return self.close(slot);
        }
        let errors = &mut self.count.errors;
        match (&loss, state) {
            (_, State::Connecting) | (Loss::Connect(_), _) => errors.connect += 1,
            (Loss::Wrong, _) => errors.wrong_reply += lost.max(1) + undelivered,
            _ if failed == 0 => errors.closed_idle += 1,
            (Loss::Read(_) | Loss::Tls(_), _) => errors.read += failed,
            (Loss::Write(_), _) => errors.write += failed,
            (Loss::Closed | Loss::CutOff, _) => errors.closed_early += failed,
            (Loss::TimedOut, _) => {
                errors.timeout += failed;
                if self.counts {
                    self.count.timeouts_in_window += owed;
                }
                self.drive.timed_out(connection, &self.times);
            }
        }
        let over_tls = self.plan.tls.is_some();
        let (rests, timeout) = (lost == 0, self.plan.timeout);
        let mut cause = loss.in_words(Lost { state, over_tls, rests, closing, timeout });
        if undelivered > 0 {
            cause += ", with deliveries owed";
        }
        if !self.plan.nodes.is_empty() {
            let number = slot as usize * self.part.threads + self.part.thread;
            cause = format!("{cause}, at the node {}", self.plan.target_of(number));
        }
        self.count.lost(&cause);
        if self.count.first_unfinished.is_none() && !is_wrong {
            let Connection { cursor, talk, replies, .. } = &self.connections[slot as usize];
            self.count.first_unfinished = self.dialect.unfinished(cursor, talk).map(|part| {
                let received = format!("{}, and then {cause}", part.received);
                Exchange { received, reply_index: *replies, ..part }
            });
        }
        if let Loss::Tls(error) = &loss {
            self.end_if_permanent(state, error);
        }
        if state != State::Open {
            self.refused += u64::from(!matches!(loss, Loss::TimedOut));
            self.shared.troubled(&cause);
        } else if self.phase == Phase::Connecting {
            self.dropped += 1;
            self.shared.troubled(&cause);
        }
        self.close(slot);
        let again = V::REOPENS_LOST || state == State::Connecting;
        if again && self.phase <= Phase::Measuring {
            self.open_later(slot);
        }
    }

    /// The pushed messages that the server owed on a connection that is lost. If the load was cut short, it has
    /// not waited for them.
    pub(super) fn undelivered(&mut self, slot: u32) -> u64 {
        let connection = &mut self.connections[slot as usize];
        let is_open = connection.state != State::Connecting;
        if !const { D::PUSHES } || !is_open || self.shared.is_cut_short() {
            return 0;
        }
        let heard = &mut self.count.operations.listen(self.now);
        self.dialect.undelivered(&mut connection.talk, heard)
    }
}
