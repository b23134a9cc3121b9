//! What a client gets from its rooms: messages, notes, orders of backends.

use super::{
    client::{Client, Identity, Phase, Waiting},
    codes::{Disconnect, Unsubscribed},
    subscription::{Progress, Sink, Subscription},
};
use crate::hub::{
    broadcast::Broadcast,
    dismissal::Dismissal,
    holding::{COUNTED, FULL},
};
use regatta_engine::{Limits, Now, PushOutcome, RoomName};
use std::mem;

impl Client {
    /// A message, a note or an order for a room comes.
    pub fn on_push(
        &mut self,
        now: Now,
        room: &RoomName,
        push: &Broadcast,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        if self.phase != Phase::Open && !self.settles(now.instant) {
            return PushOutcome::Missed;
        }
        if let Some(order) = push.dismissal() {
            return self.dismissed(room, order, now, out);
        }
        let Some(subscription) = self.rooms.get_mut(room) else { return PushOutcome::Missed };
        let mut push = push;
        let heard;
        if push.of_presence(usize::MAX, false).is_some() {
            let memory = &self.settings.backlog.memory;
            let Some(of_members) = subscription.hears_of_members(push, memory) else {
                return PushOutcome::Missed;
            };
            heard = of_members;
            push = &heard;
        } else if subscription.opening.is_some() || push.is_before(subscription.presence.place()) {
            // It begins with what the broker answers, or with what comes once it is counted.
            return PushOutcome::Missed;
        } else if push.is_gap() {
            return self.misses(room, now, out);
        } else if let Some(follower) = &mut subscription.follower {
            if !follower.hears(push) {
                return PushOutcome::Missed;
            }
            self.catch_up(room, Some(push), out, true);
            self.pauses(now, out);
            return self.census.queued(push);
        }
        let number = subscription.number;
        let (length, unread) = (out.len(), self.holding.counted(out.len()));
        let pending = self.holding.pending(length);
        let adds = subscription.pushes.length_of(push);
        if self.backlog.is_empty()
            && pending < FULL
            && (pending + adds < COUNTED || self.fits(length + adds))
        {
            if let Some(subscription) = self.rooms.get(room) {
                subscription.pushes.write(push, out);
            }
            self.wrote(push);
            self.pauses(now, out);
            return self.census.queued(push);
        }
        let waiting = Waiting { room: room.clone(), subscription: number, push: push.clone() };
        self.waits(waiting, (length, unread), now, out)
    }

    /// Messages of a room may be missing. One whose messages are not kept would not notice it later, so its subscription
    /// ends.
    fn misses(&mut self, room: &RoomName, now: Now, out: &mut Vec<u8>) -> PushOutcome {
        let follower = self.rooms.get_mut(room).and_then(|one| one.follower.as_mut());
        match follower {
            Some(follower) => {
                follower.looks();
                self.catch_up(room, None, out, true);
            }
            None => self.end(room, Unsubscribed::GAP, out),
        }
        self.pauses(now, out);
        PushOutcome::Queued
    }

    /// Keeps a message until earlier output is written. `before`: the length of the output, and what of it counts.
    fn waits(
        &mut self,
        waiting: Waiting,
        before: (usize, usize),
        now: Now,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        let (length, unread) = before;
        let is_scarce = self.settings.backlog.memory.is_scarce();
        let push = waiting.push.clone();
        match self.backlog.add(waiting, &self.bounds) {
            PushOutcome::Queued if self.has_room(length, unread) => {
                return self.census.queued(&push);
            }
            PushOutcome::Queued => self.starve(COUNTED),
            PushOutcome::Missed => return PushOutcome::Missed,
            // It is counted already.
            PushOutcome::Close if is_scarce => {
                self.phase = Phase::Cut;
                self.free();
            }
            PushOutcome::Close => {
                Disconnect::SLOW.code.write(&Disconnect::SLOW.reason, out);
                self.phase = Phase::Closed;
                self.times.cut_at = Some(now.instant + Limits::LAST_OUTPUT);
                self.free();
            }
        }
        PushOutcome::Close
    }

    /// The connection is gone. Returns what the others in a room receive.
    pub fn on_exit(&mut self, room: &RoomName) -> Option<Broadcast> {
        if let Some(subscription) = self.rooms.remove(room) {
            return subscription.end(&self.settings);
        }
        let at = self.exits.iter().position(|(of, _)| of == room)?;
        self.exits.swap_remove(at).1
    }

    /// A push was appended to the output.
    pub(super) fn wrote(&mut self, push: &Broadcast) {
        if push.sample().is_some() {
            self.unwritten.add(push.clone());
        }
    }

    /// Appends what follows in the history of a room, until much output is pending.
    pub(super) fn catch_up(
        &mut self,
        room: &RoomName,
        push: Option<&Broadcast>,
        out: &mut Vec<u8>,
        fits: bool,
    ) {
        let own = self.own();
        let Some(subscription) = self.rooms.get_mut(room) else { return };
        let (holding, pending) = (&mut self.holding, &mut self.pending);
        match subscription.catch_up(push, &mut Sink { out, holding, own, fits, pending }) {
            Progress::All => {}
            Progress::Behind => {
                if !mem::replace(&mut subscription.waits, true) {
                    self.behind.push_back(room.clone());
                }
            }
            Progress::Gap => self.end(room, Unsubscribed::GAP, out),
        }
    }

    /// Each room that is behind gets its turn.
    pub(super) fn catch_up_all(&mut self, out: &mut Vec<u8>) {
        for _ in 0..self.behind.len() {
            if self.holding.pending(out.len()) >= FULL {
                return;
            }
            let Some(room) = self.behind.pop_front() else { return };
            if let Some(subscription) = self.rooms.get_mut(&room) {
                subscription.waits = false;
                self.catch_up(&room, None, out, false);
            }
        }
    }

    /// Carries out an order of a backend, if it is for this client.
    fn dismissed(
        &mut self,
        room: &RoomName,
        order: &Dismissal,
        now: Now,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        let is_for = |one: &Identity| order.is_for(one.number, one.user.as_deref().unwrap_or(""));
        let is_noted =
            |one: &Subscription| one.presence.dismissal().is_some_and(|noted| *noted == *order);
        if !self.identity.as_ref().is_some_and(is_for)
            || !self.rooms.get(room).is_some_and(is_noted)
        {
            return PushOutcome::Missed;
        }
        if order.only_leaves {
            self.end(room, Unsubscribed::SERVER, out);
            return PushOutcome::Queued;
        }
        order.code.write(&order.reason, out);
        self.phase = Phase::Closed;
        self.times.cut_at = Some(now.instant + Limits::LAST_OUTPUT);
        self.free();
        // It is not listed from now on. That it leaves is announced once its connection is closed.
        self.rooms.values_mut().for_each(|one| one.presence.leave());
        PushOutcome::Close
    }
}
