//! The actions of the peers and of the network.

use super::{
    Scenario,
    line::{Phase, Receiving, sooner},
    peer::{Ending, Reading, Then},
    world::{World, note},
};

impl<S: Scenario> World<S> {
    /// A peer sends a piece, or ends as planned.
    pub fn peer_sends(&mut self, who: usize) {
        let (line, random) = (&mut self.lines[who], &mut self.random);
        let peer = &mut line.peer;
        peer.send_at = None;
        if peer.done || line.wire.vanished {
            return;
        }
        let pause = if peer.pause == 0 { 0 } else { random.between(0, peer.pause) };
        let rest = peer.input.len() - peer.sent;
        if rest > 0 {
            let piece = rest.min(1 + random.below(peer.piece));
            let sent = line.wire.send(&peer.input[peer.sent..peer.sent + piece]);
            peer.sent += sent;
            peer.blocked = sent < piece;
            if !peer.blocked {
                peer.send_at = Some(self.time + pause);
            }
            note!(self, "{who}: sends {sent} of {piece}");
            self.arrived(who);
            return;
        }
        if peer.lulls > 0 && !peer.ended {
            peer.lulls -= 1;
            return;
        }
        if peer.ended {
            // It has waited long enough.
            peer.ending = Ending::Reset;
        }
        match peer.ending {
            Ending::Await => return,
            Ending::HalfClose => {
                (line.wire.peer_ended, peer.ended) = (true, true);
                peer.send_at = peer.gives_up.map(|after| self.time + after);
            }
            Ending::Close => {
                (line.wire.peer_ended, line.wire.peer_closed) = (true, true);
                (peer.ended, peer.left, peer.done) = (true, true, true);
                peer.read_at = None;
            }
            Ending::Reset => {
                line.wire.send_reset();
                (peer.left, peer.done, peer.read_at) = (true, true, None);
            }
            Ending::Vanish => {
                line.wire.vanished = true;
                (peer.left, peer.done, peer.read_at) = (true, true, None);
            }
        }
        note!(self, "{who}: ends: {:?}", self.lines[who].peer.ending);
        self.arrived(who);
    }

    /// Notes that something from a peer has arrived at the server.
    pub fn arrived(&mut self, who: usize) {
        let soon = self.soon();
        let line = &mut self.lines[who];
        line.ready.news = true;
        if line.ring.receiving != Receiving::No && line.wire.is_readable() {
            sooner(&mut line.ring.receive_at, soon);
        }
        // A send that is waiting for buffer space fails.
        if line.wire.reset && line.ring.sending.is_some() {
            sooner(&mut line.ring.sent_at, soon);
        }
        let station = line.station;
        if line.is_up() {
            sooner(&mut self.stations[station].wake_at, soon);
        }
    }

    /// A peer reads.
    pub fn peer_reads(&mut self, who: usize) {
        let line = &mut self.lines[who];
        let peer = &mut line.peer;
        peer.read_at = None;
        if peer.done {
            return;
        }
        let (most, pause) = match peer.reading {
            Reading::Greedy => (usize::MAX, 0),
            Reading::Slow { bytes, pause } => (bytes.max(line.wire.delivered.len() / 24), pause),
            Reading::Until(bytes) => (bytes.saturating_sub(peer.received.len()), 0),
        };
        let bytes = most.min(line.wire.delivered.len());
        if bytes > 0 {
            let from = peer.received.len();
            peer.received.extend_from_slice(line.wire.delivered.front(bytes));
            line.wire.delivered.drop_front(bytes);
            note!(self, "{who}: reads {bytes}");
            let more = &mut self.lines[who];
            if !more.wire.delivered.is_empty() || pause > 0 {
                more.peer.read_at = Some(self.time + pause);
            }
            if !more.wire.sending.is_empty() {
                let soon = self.soon();
                sooner(&mut self.lines[who].net_at, soon);
            }
            self.check_received(who, from);
            return;
        }
        if most == 0 || !line.wire.delivered.is_empty() {
            return;
        }
        if line.wire.peer_reset {
            (peer.done, peer.send_at) = (true, None);
            note!(self, "{who}: sees a reset");
        } else if line.wire.has_ended() {
            note!(self, "{who}: sees the end");
            self.peer_saw_the_end(who);
        }
    }

    fn peer_saw_the_end(&mut self, who: usize) {
        let soon = self.soon();
        let line = &mut self.lines[who];
        let peer = &mut line.peer;
        match peer.then {
            _ if peer.ended => (peer.done, peer.send_at) = (true, None),
            Then::Close => {
                (line.wire.peer_ended, peer.ended) = (true, true);
                (peer.done, peer.send_at) = (true, None);
                self.arrived(who);
            }
            Then::Nothing => {}
            Then::Flood(bytes) => {
                let short = bytes.saturating_sub(peer.input.len() - peer.sent);
                peer.input.resize(peer.input.len() + short, b'f');
                peer.piece = peer.piece.max((peer.input.len() - peer.sent) / 16 + 1);
                peer.then = Then::Nothing;
                if !peer.blocked {
                    peer.send_at = Some(soon);
                }
            }
        }
    }

    /// The network delivers what the server has written.
    pub fn deliver(&mut self, who: usize) {
        let now = self.now().instant;
        let soon = self.soon();
        let line = &mut self.lines[who];
        line.net_at = None;
        let most = match line.wire.sending.len() {
            len if len > 8 && self.random.chance(300) => 1 + self.random.below(len),
            len => len,
        };
        let reset = line.wire.reset;
        let acknowledged = line.wire.deliver(most);
        if acknowledged > 0 {
            line.watch.took = Some(now);
            line.watch.owed = (!line.wire.sending.is_empty()).then_some(now);
            if !line.wire.sending.is_empty() {
                line.net_at = Some(soon);
            }
            note!(self, "{who}: {acknowledged} bytes are delivered");
        }
        let line = &mut self.lines[who];
        if line.peer.reading != Reading::Until(line.peer.received.len()) && !line.peer.done {
            line.peer.read_at.get_or_insert(soon);
        }
        if line.wire.reset != reset {
            self.arrived(who);
        } else if acknowledged > 0 && line.is_up() {
            self.ring_has_room(who);
            let line = &self.lines[who];
            if line.ready.watched_write && line.wire.is_writable() {
                self.wake(line.station);
            }
        }
    }

    /// Schedules delivery after the server has written, shut down or closed a socket.
    pub fn departed(&mut self, who: usize) {
        let soon = self.soon();
        sooner(&mut self.lines[who].net_at, soon);
    }

    /// The server has read, so a blocked peer continues to send.
    pub fn drained(&mut self, who: usize) {
        let soon = self.soon();
        let line = &mut self.lines[who];
        if std::mem::take(&mut line.peer.blocked) && !line.peer.done {
            line.peer.send_at = Some(soon);
        }
    }

    /// Returns whether another server accepts a connection, once it has answered.
    pub fn answers(&mut self, who: usize) -> Option<bool> {
        match self.lines[who].phase {
            Phase::Connecting(at, takes) if at <= self.time => Some(takes),
            _ => None,
        }
    }
}
