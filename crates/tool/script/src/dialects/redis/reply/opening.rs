//! The steps before a connection's first request: it selects the database, and stores the initial
//! values of the client's keys so that their content is known.

use super::talk::{ConnectionState, Opening};
use crate::dialects::redis::{
    commands::{Command, Framed},
    exchanges::Exchanges,
};
use crate::text::{line, printable};
use regatta_proto::resp::write_command;
use regatta_record::Exchange;

/// Number of request bytes after which a batch ends.
const AT_A_TIME: usize = 32 << 10;
/// The reply to all of these requests.
const OK: &[u8] = b"+OK\r\n";

/// The steps of every connection.
#[derive(Debug)]
pub(super) struct Steps {
    /// The database to select, if the URL names one.
    pub database: Option<String>,
    /// Number of keys of each client that get a value.
    pub values: usize,
    /// Number of keys of each client that get a count of 0.
    pub counters: usize,
}

impl Steps {
    /// Continues the steps: see [`crate::Dialect::open`].
    pub fn advance(
        &self,
        exchanges: &Exchanges,
        talk: &mut ConnectionState,
        data: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<Exchange>> {
        if !talk.opening.started {
            talk.opening.started = true;
            if let Some(database) = &self.database {
                write_command([&b"SELECT"[..], database.as_bytes()], out);
                talk.opening.due = 1;
            }
        } else if let Err(received) = take_oks(&mut talk.opening, data) {
            let sent = match (&self.database, talk.opening.stored) {
                (Some(database), 0) => format!("SELECT {database}"),
                _ => "SET of the client's keys, before the first request".into(),
            };
            let expected = printable(OK);
            return Err(Box::new(Exchange { sent, expected, received, reply_index: 0 }));
        }
        if talk.opening.due > 0 {
            return Ok(false);
        }
        self.store(exchanges, talk, out);
        talk.opening.done = talk.opening.due == 0;
        Ok(talk.opening.done)
    }

    /// Stores the next batch of keys.
    fn store(&self, exchanges: &Exchanges, talk: &mut ConnectionState, out: &mut Vec<u8>) {
        let all = self.values + self.counters;
        let ConnectionState { opening, versions, counters, owner, author, .. } = talk;
        let is_stored = versions.len() == self.values && counters.len() == self.counters;
        if is_stored && opening.stored == 0 {
            return;
        }
        let set = Framed::new(Command::Set, 1);
        while opening.stored < all && out.len() < AT_A_TIME {
            match opening.stored.checked_sub(self.values) {
                None => {
                    let keys = [opening.stored as u16];
                    set.write(&exchanges.names, (&*owner, &*author), &keys, 0, out);
                    versions.push(0);
                }
                Some(counter) => {
                    out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                    let kind = Command::Incr.kind();
                    exchanges.names.write_key(kind, owner, counter as u16, out);
                    out.extend_from_slice(b"$1\r\n0\r\n");
                    counters.push(0);
                }
            }
            opening.stored += 1;
            opening.due += 1;
        }
    }
}

/// Consumes the expected replies from the front of `data`; on a mismatch, returns what was received
/// instead.
fn take_oks(opening: &mut Opening, data: &mut &[u8]) -> Result<(), String> {
    while opening.due > 0 && !data.is_empty() {
        let wanted = &OK[opening.right..];
        let here = wanted.len().min(data.len());
        if data[..here] != wanted[..here] {
            return Err(printable(&[&OK[..opening.right], line(data)].concat()));
        }
        *data = &data[here..];
        opening.right += here;
        if opening.right == OK.len() {
            opening.right = 0;
            opening.due -= 1;
        }
    }
    Ok(())
}
