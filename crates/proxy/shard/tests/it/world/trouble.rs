//! What goes wrong in a history: failures, clients that disconnect, and drains.

use super::*;
use crate::node::ELEMENT;

impl<E: Tested> World<E> {
    /// Lets a client disconnect if it is blocked.
    pub(super) fn abandon(&mut self, conn: Conn, probability: f64, seen: &mut Seen) {
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        if let End::Client(client) = &wire.end
            && client.is_blocked
            && !wire.has_ended
            && !wire.is_reset
            && self.random.random_bool(probability)
        {
            seen.abandoned += 1;
            match self.random.random_bool(0.5) {
                true => wire.is_reset = true,
                false => wire.has_ended = true,
            }
        }
    }

    /// Stops gracefully, as a driver does. Elements are pushed meanwhile to the lists on which clients
    /// wait: each is delivered, or stays in its list.
    pub(super) fn drain(&mut self, seen: &mut Seen) -> Result<(), String> {
        self.settle(seen)?;
        seen.drains += 1;
        let stops_at = self.random.random_range(0..10);
        let (mut pushed, before) = (0, seen.delivered_in_drain);
        for round in 0..30 {
            if round == stops_at {
                self.stop();
            }
            if self.random.random_bool(0.3) {
                pushed += self.push_to_blocked();
            }
            self.now += Duration::from_millis(self.random.random_range(0..3));
            self.turn();
            for conn in self.conns() {
                if self.random.random_bool(0.5) {
                    self.arrive(conn, usize::MAX, seen);
                }
            }
            self.end_turn();
            for conn in self.conns() {
                if self.random.random_bool(0.5) {
                    self.leave(conn, usize::MAX, seen)?;
                }
            }
        }
        self.settle(seen)?;
        let left: usize = self.data.iter().map(|data| data.count(ELEMENT)).sum();
        let delivered = (seen.delivered_in_drain - before) as usize;
        // Otherwise, a connection may have been lost.
        let is_safe = !self.trouble.fails && self.shared.counts.evicted.get() == 0;
        if left + delivered != pushed && is_safe {
            return Err(format!(
                "of {pushed} elements, {delivered} were delivered, {left} are left"
            ));
        }
        seen.left_in_drain += left as u64;
        Ok(())
    }

    fn stop(&mut self) {
        self.turn();
        self.core.stop(Duration::from_secs(36_000));
        let clients: Vec<Conn> = self.core.to_drain().collect();
        for conn in clients {
            if let Some(wire) = self.wires.get_mut(&conn) {
                wire.has_ended = true;
            }
        }
        self.end_turn();
    }

    /// Pushes an element for each client that waits for one. Returns their number.
    fn push_to_blocked(&mut self) -> usize {
        let mut pushed = 0;
        for wire in self.wires.values() {
            if let End::Node(node, true, session) = &wire.end {
                let place = self.data_of(*node);
                pushed += usize::from(session.push_to_blocked(ELEMENT, &mut self.data[place]));
            }
        }
        pushed
    }

    /// Checks that nothing remains of the clients that have disconnected.
    pub(super) fn check_ends(&self) -> Result<(), String> {
        for (conn, wire) in &self.wires {
            match &wire.end {
                End::Client(_) if wire.has_ended || wire.is_reset => {
                    return Err(format!("{conn:?} has ended and is still connected"));
                }
                End::Node(node, _, session) if session.is_blocked() => {
                    return Err(format!("node {node} is blocked for a client that has ended"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn cause_trouble(&mut self, seen: &mut Seen) {
        if self.random.random_bool(0.04) {
            let node = self.random.random_range(0..self.nodes.len());
            let health = match self.nodes[node] {
                Health::Well if self.random.random_bool(0.7) => Health::Dead,
                Health::Well => Health::Stalled,
                Health::Dead | Health::Stalled => Health::Well,
            };
            self.note(|| format!("node {node} is {health:?}"));
            self.nodes[node] = health;
            if health == Health::Dead {
                seen.deaths += 1;
                for wire in self.wires.values_mut() {
                    if matches!(&wire.end, End::Node(of, true, _) if *of == node) {
                        // Some bytes that the node sent may still arrive.
                        match self.random.random_bool(0.5) {
                            true => wire.is_reset = true,
                            false => wire.has_ended = true,
                        }
                    }
                }
            } else if health == Health::Stalled {
                seen.stalls += 1;
                self.now += Duration::from_millis(self.random.random_range(0..3000));
            }
        }
        if self.random.random_bool(0.01)
            && let Some(conn) = self.some_client()
            && let Some(wire) = self.wires.get_mut(&conn)
        {
            if self.random.random_bool(0.5) {
                wire.is_reset = true;
                seen.resets += 1;
            } else {
                wire.has_ended = true;
                seen.half_closes += 1;
            }
        }
    }
}
