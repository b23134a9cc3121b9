//! Lines on stderr about clients that were refused: for each reason one at once, then at most one per second with the
//! number of all since.

use crate::output;
use regatta_service::throttle::Throttle;
use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
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
    const ALL: [Reason; 4] =
        [Reason::MaxClients, Reason::PerAddress, Reason::TlsHandshake, Reason::WrongPassword];

    fn name(self) -> &'static str {
        match self {
            Reason::MaxClients => "max_clients",
            Reason::PerAddress => "per_address",
            Reason::TlsHandshake => "tls_handshake",
            Reason::WrongPassword => "wrong_password",
        }
    }

    /// What is counted.
    fn thing(self) -> &'static str {
        match self {
            Reason::WrongPassword => "password",
            Reason::MaxClients | Reason::PerAddress | Reason::TlsHandshake => "connection",
        }
    }
}

/// Prints what was refused.
#[derive(Clone, Debug, Default)]
pub struct Refused(Arc<Pending>);

#[derive(Debug, Default)]
struct Pending {
    of: Mutex<[OfReason; Reason::ALL.len()]>,
    is_pending: Condvar,
}

#[derive(Debug, Default)]
struct OfReason {
    throttle: Throttle,
    /// About the last one.
    detail: String,
}

impl Refused {
    /// Notes that a client was refused. `detail`: printed if no other is refused for this reason before the next line.
    pub fn note(&self, reason: Reason, detail: String) {
        let mut all = self.lock();
        let of = &mut all[reason as usize];
        let was_pending = of.throttle.due().is_some();
        of.throttle.add(Instant::now());
        of.detail = detail;
        if !was_pending {
            self.0.is_pending.notify_one();
        }
    }

    /// Prints the lines from now on, in a thread of its own, because stderr may block.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow(&self) -> io::Result<()> {
        let refused = self.clone();
        let follow = move || {
            loop {
                output::message(&refused.next_line());
            }
        };
        thread::Builder::new().name("refused".into()).spawn(follow).map(drop)
    }

    /// Waits for the next line.
    fn next_line(&self) -> String {
        let mut all = self.lock();
        loop {
            let now = Instant::now();
            let line = |reason: Reason| all[reason as usize].line(reason, now);
            if let Some(line) = Reason::ALL.into_iter().find_map(line) {
                return line;
            }
            let due = all.iter().filter_map(|of| of.throttle.due()).min();
            all = match due {
                None => self.0.is_pending.wait(all).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_duration_since(now);
                    let waited = self.0.is_pending.wait_timeout(all, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, [OfReason; Reason::ALL.len()]> {
        self.0.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfReason {
    fn line(&mut self, reason: Reason, now: Instant) -> Option<String> {
        let (burst, detail) = (self.throttle.take(now)?, &self.detail);
        let (thing, reason) = (reason.thing(), reason.name());
        Some(format!("regatta: {thing} refused: reason={reason} {burst} detail={detail:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_lines_of_their_own() {
        let refused = Refused::default();
        refused.note(Reason::PerAddress, "limit 1, from 10.0.0.1".into());
        refused.note(Reason::MaxClients, "limit 9".into());
        for line in [
            "regatta: connection refused: reason=max_clients count=1 over=0.0s detail=\"limit 9\"",
            "regatta: connection refused: reason=per_address count=1 over=0.0s detail=\"limit 1, from 10.0.0.1\"",
        ] {
            assert_eq!(refused.next_line(), line);
        }
        refused.note(Reason::WrongPassword, "WRONGPASS".into());
        refused.note(Reason::MaxClients, "limit 8".into());
        refused.note(Reason::MaxClients, "limit 7".into());
        let line = refused.next_line();
        assert!(
            line.starts_with("regatta: password refused: reason=wrong_password count=1 "),
            "{line}"
        );
        let line = refused.next_line();
        assert!(
            line.starts_with("regatta: connection refused: reason=max_clients count=2 "),
            "{line}"
        );
        assert!(line.ends_with(" detail=\"limit 7\""), "{line}");
    }
}
