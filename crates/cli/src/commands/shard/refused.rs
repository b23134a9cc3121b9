//! Lines on stderr about clients that were refused: for each reason one at once, then at most one per second with the
//! number of all since.

use crate::output;
use regatta_service::limited_log::{Burst, LimitedLog};
use std::{
    io,
    sync::{Arc, OnceLock},
    thread::{self, Thread},
    time::Instant,
};

/// Why a client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `--max-clients`.
    MaxClients,
    /// `--max-clients-per-address`.
    PerAddress,
    /// The TLS handshake failed.
    TlsHandshake,
    /// AUTH with a wrong user name or password. The client stays connected.
    WrongPassword,
}

impl Reason {
    /// What is counted, and the name.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Reason::MaxClients => ("connection", "max_clients"),
            Reason::PerAddress => ("connection", "per_address"),
            Reason::TlsHandshake => ("connection", "tls_handshake"),
            Reason::WrongPassword => ("password", "wrong_password"),
        }
    }
}

/// Prints what was refused.
#[derive(Clone, Debug, Default)]
pub struct Refused(Arc<Pending>);

#[derive(Debug, Default)]
struct Pending {
    log: LimitedLog<Reason>,
    /// The thread that prints.
    prints: OnceLock<Thread>,
}

impl Refused {
    /// Notes that a client was refused. `detail`: printed if no other is refused for this reason before the next line.
    pub fn note(&self, reason: Reason, detail: String) {
        self.0.log.add(reason, detail, Instant::now());
        if let Some(prints) = self.0.prints.get() {
            prints.unpark();
        }
    }

    /// Prints the lines from now on, in a thread of its own, because stderr may block.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow(&self) -> io::Result<()> {
        let Refused(pending) = self.clone();
        let follow = move || {
            loop {
                let now = Instant::now();
                match (pending.log.take(now), pending.log.due()) {
                    (Some(burst), _) => output::message(&line(&burst)),
                    (None, Some(due)) => thread::park_timeout(due.saturating_duration_since(now)),
                    (None, None) => thread::park(),
                }
            }
        };
        let follows = thread::Builder::new().name("refused".into()).spawn(follow)?;
        // It may have found nothing before this.
        self.0.prints.get_or_init(|| follows.thread().clone()).unpark();
        Ok(())
    }
}

fn line(burst: &Burst<Reason>) -> String {
    let (thing, reason) = burst.kind.names();
    format!("regatta: {thing} refused: reason={reason} {burst}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_lines_of_their_own() {
        let refused = Refused::default();
        let next = || refused.0.log.take(Instant::now()).as_ref().map(line).unwrap();
        refused.note(Reason::MaxClients, "limit 9".into());
        let expected =
            "regatta: connection refused: reason=max_clients count=1 over=0.0s detail=\"limit 9\"";
        assert_eq!(next(), expected);
        refused.note(Reason::MaxClients, "limit 8".into());
        refused.note(Reason::WrongPassword, "WRONGPASS".into());
        let expected = "regatta: password refused: reason=wrong_password count=1 over=0.0s detail=\"WRONGPASS\"";
        assert_eq!(next(), expected);
    }
}
