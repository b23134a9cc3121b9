//! The limits of memory in a history: clients that try to exceed them, and the checks.

use super::{Tested, World};
use crate::{
    pest::{Kind, Pest},
    seen::Seen,
    wire::{End, Wire},
};
use rand::{Rng, rngs::SmallRng};
use regatta_engine::Conn;
use regatta_shard::{Credentials, Settings};
use std::time::Duration;

/// More memory than the clients of a history can use.
const MUCH: usize = 100_000_000;

/// Room for the replies of one client in some histories. A value may be larger.
pub(super) const TIGHT: usize = 150_000;

/// The password of the clients, if they need one.
const PASSWORD: &[u8] = b"secret";

/// Bytes that may be held for a client without being counted: small replies.
const UNCOUNTED: usize = 16 * 1024;

/// The most bytes that may be held for a client that has not authenticated: ten arguments of 16 KiB,
/// and what one read has brought since.
const BEFORE_TRUST: usize = 10 * 16 * 1024 + 64 * 1024 + 1000;

/// Chooses a password and a budget for a history.
pub(super) fn limit(settings: &mut Settings, random: &mut SmallRng) {
    if random.random_bool(0.3) {
        let (user, password) = (Credentials::DEFAULT_USER.to_vec(), PASSWORD.to_vec());
        settings.auth.clients = Some(Credentials { user, password });
    }
    if random.random_bool(0.3) {
        settings.all_bytes = random.random_range(100_000..1_000_000);
    }
    if random.random_bool(0.1) {
        settings.client_bytes = TIGHT;
    }
}

impl<E: Tested> World<E> {
    /// Sends the password of a client, if it needs one.
    pub(super) fn authenticate(&mut self, conn: Conn) {
        if self.shared.settings.auth.clients.is_some()
            && let Some(Wire { end: End::Client(client), to_proxy, .. }) = self.wires.get_mut(&conn)
        {
            client.authenticate(PASSWORD, to_proxy);
        }
    }

    /// Connects clients that try to fill the memory.
    pub(super) fn admit_pests(&mut self) {
        for _ in 0..self.random.random_range(1..6) {
            self.clients += 1;
            self.longest = self.longest.max(Pest::LONGEST);
            self.turn();
            let conn = self.core.accept();
            let pest = Pest::new(&mut self.random);
            self.note(|| format!("{conn:?} is a pest: {:?}", pest.kind));
            self.wires.insert(conn, Wire::new(End::Pest(pest)));
            self.serve(conn);
            self.end_turn();
        }
    }

    /// Lets these clients send more.
    pub(super) fn pests_send(&mut self) {
        let password = self.shared.settings.auth.clients.as_ref().map(|_| PASSWORD);
        for wire in self.wires.values_mut() {
            if let End::Pest(pest) = &mut wire.end
                && self.random.random_bool(0.6)
                && !wire.has_ended
                && !wire.is_reset
            {
                pest.send(&mut self.random, password, &mut wire.to_proxy);
            }
        }
    }

    /// Checks that no client was disconnected although there was memory.
    pub(super) fn check_evictions(&self, seen: &mut Seen) -> Result<(), String> {
        let evicted = self.shared.counts.evicted.get();
        if evicted > 0 && self.shared.settings.all_bytes > MUCH {
            return Err("a client was disconnected although there was memory".into());
        }
        seen.evictions += evicted as u64;
        Ok(())
    }

    /// Checks that the memory for clients is within its limit.
    pub(super) fn check_memory(&self) -> Result<(), String> {
        let clients = || self.wires.iter().filter(|(_, wire)| !wire.is_node());
        let unsent: usize = clients().map(|(conn, _)| self.core.output(*conn).len()).sum();
        let held = unsent + self.core.engine().proxy().held_for_clients();
        let most = self.shared.settings.all_bytes + clients().count() * UNCOUNTED;
        if held > most {
            return Err(format!("{held} bytes are held for clients, more than {most}"));
        }
        match self.core.engine().proxy().held_before_trust() {
            stranger if stranger > BEFORE_TRUST => {
                Err(format!("{stranger} bytes are held for a client that has not authenticated"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that no request stays incomplete.
    pub(super) fn expire(&mut self, seen: &mut Seen) -> Result<(), String> {
        let is_partial = |wire: &Wire| {
            matches!(&wire.end, End::Pest(pest) if pest.kind == Kind::Partial)
                && !wire.has_ended
                && !wire.is_reset
        };
        let before = self.wires.values().filter(|wire| is_partial(wire)).count();
        for _ in 0..10 {
            self.now += Duration::from_secs(60);
            self.everything(seen)?;
        }
        if self.wires.values().any(is_partial) {
            return Err("a request stays incomplete forever".into());
        }
        seen.late_requests += before as u64;
        Ok(())
    }
}
