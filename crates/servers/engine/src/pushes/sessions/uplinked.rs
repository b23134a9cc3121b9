//! What sessions have to do with another server: calls of their [`Uplink`], and what is waited for there.

use super::{Sessions, remote::Remote};
use crate::{
    Conn, Effects, Letter, Posted, RemoteOutcome, RoomName, Session, SessionFactory, Ticket,
    Uplink, UplinkAct, UplinkTurn,
};

impl<F: SessionFactory, U: Uplink<<F::Session as Session>::Push>> Sessions<F, U> {
    /// Calls the uplink, and carries out what it wants done.
    pub(super) fn call_uplink(
        &mut self,
        effects: &mut Effects<Self>,
        what: impl FnOnce(&mut U, &mut UplinkTurn<'_, <F::Session as Session>::Push>),
    ) {
        let Remote { uplink: Some(uplink), conn, acts, .. } = &mut self.remote else { return };
        let now = effects.now();
        let pending = conn.map_or(0, |conn| effects.pending(conn));
        let mut none = Vec::new();
        let out = conn.and_then(|conn| effects.out(conn)).unwrap_or(&mut none);
        what(uplink, &mut UplinkTurn { now, out, pending, acts });
        let mut acts = std::mem::take(acts);
        for act in acts.drain(..) {
            self.act(act, effects);
        }
        // Reuses the memory, unless it was called meanwhile.
        if self.remote.acts.is_empty() {
            self.remote.acts = acts;
        }
    }

    fn act(&mut self, act: UplinkAct<<F::Session as Session>::Push>, effects: &mut Effects<Self>) {
        match act {
            UplinkAct::Connect(to) => self.remote.conn = Some(effects.connect(to)),
            UplinkAct::Disconnect => {
                if let Some(conn) = self.remote.conn.take() {
                    effects.abort(conn);
                }
            }
            UplinkAct::Push(room, push) => {
                self.push(&room, &push, None, effects);
                effects.post(Letter::Push(room, push));
            }
            UplinkAct::PushAll(push) => {
                self.push_all(&push, effects);
                effects.post(Letter::All(push));
            }
            UplinkAct::Done(Ticket { core, count }, outcome) if core == self.core => {
                self.sent(count, outcome, effects);
            }
            UplinkAct::Done(Ticket { core, count }, outcome) => {
                effects.post(Letter::Sent { to: core, count, outcome });
            }
        }
    }

    /// The uplink could not be connected, or its connection is lost.
    pub(super) fn uplink_closed(&mut self, effects: &mut Effects<Self>) {
        self.remote.conn = None;
        self.call_uplink(effects, U::closed);
    }

    /// A session posts something to another server, and gets the outcome with its ticket.
    pub(super) fn send(
        &mut self,
        (conn, ticket): (Conn, u64),
        room: RoomName,
        push: <F::Session as Session>::Push,
        effects: &mut Effects<Self>,
    ) {
        self.remote.counted += 1;
        let (core, count) = (self.core, self.remote.counted);
        self.remote.waiting.insert(count, (conn, ticket));
        if core == 0 {
            let ticket = Ticket { core, count };
            self.call_uplink(effects, |uplink, turn| uplink.send(&room, &push, ticket, turn));
        } else {
            effects.post(Letter::Remote { room, push, from: core, count });
        }
    }

    /// The outcome of what a session of this core has posted is known.
    pub(super) fn sent(&mut self, count: u64, outcome: RemoteOutcome, effects: &mut Effects<Self>) {
        if let Some((conn, ticket)) = self.remote.waiting.remove(&count) {
            self.call(conn, effects, |session, context| session.on_sent(context, ticket, outcome));
        }
    }

    /// Pushes to the members of all rooms on this core.
    pub(super) fn push_all(
        &mut self,
        push: &<F::Session as Session>::Push,
        effects: &mut Effects<Self>,
    ) {
        let rooms: Vec<RoomName> = self.members.rooms.keys().cloned().collect();
        for room in rooms {
            self.push(&room, push, None, effects);
        }
    }

    /// Handles a letter that only servers with an uplink post.
    pub(super) fn heard_remote(
        &mut self,
        letter: Letter<<F::Session as Session>::Push>,
        effects: &mut Effects<Self>,
    ) {
        let is_for_me = letter.to().is_none_or(|to| to == self.core);
        match letter {
            Letter::All(push) => self.push_all(&push, effects),
            Letter::Remote { room, push, from, count } if is_for_me => {
                let ticket = Ticket { core: from, count };
                self.call_uplink(effects, |uplink, turn| uplink.send(&room, &push, ticket, turn));
            }
            Letter::Sent { count, outcome, .. } if is_for_me => self.sent(count, outcome, effects),
            _ => {}
        }
    }
}
