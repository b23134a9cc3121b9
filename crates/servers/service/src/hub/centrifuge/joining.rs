//! Commands with tokens: to connect, to subscribe, and to stay.

use super::{
    client::{Client, Identity, Turn},
    codes::{Disconnect, Failure, Refusal},
    commands::room,
    opening::{Opening, Wish},
    pending::{Waiter, What},
    reply::{Answer, Connected, Expiry, Pushes, Subscribed, write_answer},
    request::{SubRefresh, Subscribe, Token},
    subscription::Subscription,
};
use crate::hub::{
    access::{Access, Admission, Denied, Invalid, Rights},
    broadcast::Broadcast,
    broker::failure,
    census::{Full, LONGEST_NAME, Limits, Person, Presence, client_of},
    history::{Asker, Joining, Position},
    holding::FULL,
    message::Change,
    refusal::RefusedClient,
    rooms::RoomTerms,
};
use regatta_engine::{Now, Post, RemoteOutcome, RoomName};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum number of subscriptions of a connection.
const SUBSCRIPTIONS: usize = 128;
/// Why a subscription does not begin.
const NOT_ASKED: &str = "the broker cannot be asked for the history of the room now";
/// What the version of the hub is called.
const VERSION: &str = concat!("regatta ", env!("CARGO_PKG_VERSION"));

/// What a client may do in a room, and for how long.
struct Grant {
    rights: Rights,
    expires_at: Option<Instant>,
    ttl_s: Option<u64>,
}

impl Client {
    pub(super) fn connect(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Token<'_>,
    ) -> Result<Answer, Refusal> {
        self.settings = self.live.current();
        let admission =
            self.check(&request.token, "connect", turn.now).map_err(|denied| match denied {
                Denied::NotValid(Invalid::Expired) => Refusal::from(Failure::TOKEN_EXPIRED),
                _ => Disconnect::INVALID_TOKEN.into(),
            })?;
        let ttl_s = admission.ttl_s(turn.now.unix_s);
        let number = self.census.connect();
        self.times.connects_by = None;
        self.times.expires_at = admission.expires_at(turn.now);
        let ping = self.settings.ping;
        self.times.pings_at = ping.map(|every| turn.now.instant + every);
        let Admission { user, info, scope, .. } = admission;
        self.identity = Some(Identity { number, user: user.map(Into::into), info, scope });
        Ok(Answer::Connect(self.connected(ttl_s)))
    }

    fn connected(&self, ttl_s: Option<u64>) -> Connected {
        let ping = self.settings.ping.map(|every| every.as_secs().max(1));
        let number = self.identity.as_ref().map_or(0, |identity| identity.number);
        Connected {
            client: client_of(self.census.node, number),
            version: VERSION,
            expiry: Expiry::in_s(ttl_s),
            ping,
            pong: ping.is_some(),
        }
    }

    /// A new token for the connection, of the same user.
    pub(super) fn refresh(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Token<'_>,
    ) -> Result<Answer, Refusal> {
        let admission =
            self.check(&request.token, "refresh", turn.now).map_err(|denied| match denied {
                Denied::NotValid(Invalid::Expired) => Disconnect::EXPIRED,
                _ => Disconnect::INVALID_TOKEN,
            })?;
        let is_same = |one: &Identity| one.user.as_deref() == admission.user.as_deref();
        if !self.identity.as_ref().is_some_and(is_same) {
            return Err(Disconnect::INVALID_TOKEN.into());
        }
        let ttl_s = admission.ttl_s(turn.now.unix_s);
        self.times.expires_at = admission.expires_at(turn.now);
        if let Some(identity) = &mut self.identity {
            (identity.info, identity.scope) = (admission.info, admission.scope);
        }
        Ok(Answer::Refresh(self.connected(ttl_s)))
    }

    /// A new token for a subscription.
    pub(super) fn sub_refresh(
        &mut self,
        turn: &mut Turn<'_>,
        request: &SubRefresh<'_>,
    ) -> Result<Answer, Refusal> {
        let room = room(&request.channel)?;
        if !self.rooms.contains_key(&room) {
            return Err(Failure::PERMISSION_DENIED.into());
        }
        let Grant { rights, expires_at, ttl_s } =
            self.grant(&request.channel, &request.token, turn.now)?;
        if let Some(subscription) = self.rooms.get_mut(&room) {
            (subscription.rights, subscription.expires_at) = (rights, expires_at);
        }
        self.finds_first_expiry();
        Ok(Answer::SubRefresh(Expiry::in_s(ttl_s)))
    }

    /// Begins a subscription, and writes the reply.
    pub(super) fn subscribe(
        &mut self,
        turn: &mut Turn<'_>,
        id: u32,
        request: &Subscribe<'_>,
    ) -> Result<(), Refusal> {
        let room = room(&request.channel)?;
        if self.rooms.contains_key(&room) {
            return Err(Failure::ALREADY_SUBSCRIBED.into());
        }
        if self.rooms.len() >= SUBSCRIPTIONS {
            return Err(Failure::LIMIT_EXCEEDED.into());
        }
        if request.kind != 0 || request.tf.is_some() {
            return Err(Failure::NOT_AVAILABLE.into());
        }
        self.settings = self.live.current();
        let Grant { rights, expires_at, ttl_s } =
            self.grant(&request.channel, &request.token, turn.now)?;
        let terms = Arc::clone(self.settings.terms(room.as_str()));
        // A hub that has begun without presence at its broker notifies nobody.
        let notifies = terms.presence && (!self.has_broker() || self.census.notifies());
        let join_leave = request.join_leave && notifies && rights.sees;
        let presence = self.enter(&room, &terms, turn.now)?;
        let wish = Wish::of(request);
        let history = presence.history().cloned();
        self.next += 1;
        let mut subscription = Subscription {
            number: self.next,
            presence,
            rights,
            join_leave,
            awaits_list: join_leave && self.has_broker(),
            expires_at,
            follower: None,
            opening: None,
            waits: false,
            pushes: Pushes::of(&request.channel),
            terms,
        };
        if let Some(history) = history.as_ref().filter(|_| self.has_broker()) {
            let joining = Joining::new(history, wish.asked, self.pending.next_ticket());
            let ttl = ttl_s.map(Duration::from_secs);
            let renews_at = ttl.and_then(|ttl| turn.now.instant.checked_add(ttl));
            subscription.opening = Some(Box::new(Opening { id, joining, wish, renews_at }));
            self.waits_to_begin(turn, room, subscription);
            return Ok(());
        }
        let most = self.most_recovered(turn.out);
        let (result, follower) = wish.begin(history.as_ref(), None, most, turn.now.instant)?;
        subscription.follower = follower.map(Box::new);
        let result = Subscribed { expiry: Expiry::in_s(ttl_s), ..result };
        write_answer(id, &Answer::Subscribe(result), turn.out);
        self.joins(turn, room, subscription);
        Ok(())
    }

    /// Bytes of messages from which on no more are in the reply, but follow it: as much as is output at once.
    fn most_recovered(&self, out: &[u8]) -> usize {
        (FULL / 2).min(FULL.saturating_sub(self.holding.pending(out.len())))
    }

    /// Is in a room from now on.
    fn is_in(&mut self, turn: &mut Turn<'_>, room: RoomName, subscription: Subscription) {
        turn.posts.push(Post::Enter(room.clone()));
        let has_own_expiry = subscription.expires_at.is_some();
        self.rooms.insert(room, subscription);
        if has_own_expiry {
            self.finds_first_expiry();
        }
    }

    /// Enters a room, and asks the broker for its history. The reply follows the answer.
    fn waits_to_begin(&mut self, turn: &mut Turn<'_>, room: RoomName, subscription: Subscription) {
        let Some(Opening { id, joining, .. }) = subscription.opening.as_deref() else { return };
        let question = Broadcast::question(joining.wanted(), Asker::Backend);
        let what = What::Subscribe(subscription.number);
        let waiter = Waiter { id: *id, room: room.clone(), what };
        self.is_in(turn, room, subscription);
        self.asks(turn, waiter, question);
    }

    /// The broker has answered for the history of a room, for the subscription with this number.
    pub(super) fn has_waited(
        &mut self,
        turn: &mut Turn<'_>,
        (room, number): (&RoomName, u64),
        outcome: RemoteOutcome,
    ) {
        let most = self.most_recovered(turn.out);
        let subscription = self.rooms.get_mut(room).filter(|one| one.number == number);
        let Some(subscription) = subscription else { return };
        let Some(opening) = &subscription.opening else { return };
        let now = turn.now.instant;
        let begun = match failure(outcome) {
            Some(_) => Err(Failure::of_broker(NOT_ASKED, true)),
            None => opening.begin(Position::kept(outcome), most, now),
        };
        let (result, follower) = match begun {
            Ok(begun) => begun,
            Err(failure) => return self.leave_room(turn, room.clone(), &failure),
        };
        subscription.follower = follower.map(Box::new);
        let Some(mut opening) = subscription.opening.take() else { return };
        write_answer(opening.id, &Answer::Subscribe(result), turn.out);
        self.catch_up(room, None, turn.out, true);
        for (ticket, position) in opening.joining.take_own() {
            self.has_position(ticket, position, turn.out);
        }
        let notified = self.rooms.get(room).filter(|one| one.join_leave && !one.awaits_list);
        let joined = notified.map(|one| one.own_join(&self.settings.backlog.memory));
        if let Some(joined) = joined {
            // It could not get it before the reply.
            self.on_push(turn.now, room, &joined, turn.out);
        }
    }

    /// Enters a room whose reply is written.
    fn joins(&mut self, turn: &mut Turn<'_>, room: RoomName, subscription: Subscription) {
        let notifies = subscription.terms.presence && !self.has_broker();
        let joined = notifies.then(|| {
            let (members, _) = subscription.presence.here(0);
            let note = subscription.presence.note(Change::Joined);
            Broadcast::presence(note, members, &self.settings.backlog.memory)
        });
        let is_behind = subscription.is_behind();
        self.is_in(turn, room.clone(), subscription);
        if let Some(joined) = joined {
            // It is notified, too, as by Centrifugo.
            self.on_push(turn.now, &room, &joined, turn.out);
            turn.posts.push(Post::To(room.clone(), joined));
        }
        if is_behind {
            self.catch_up(&room, None, turn.out, true);
        }
    }

    /// Takes a place in a room.
    fn enter(&self, room: &RoomName, terms: &RoomTerms, now: Now) -> Result<Presence, Refusal> {
        let Some(Identity { number, user, info, .. }) = &self.identity else {
            return Err(Failure::PERMISSION_DENIED.into());
        };
        // Members see each other's names. That of a client is its user.
        let is_fine = |name: &&str| terms.presence && (1..=LONGEST_NAME).contains(&name.len());
        let name = user.as_deref().filter(is_fine).map(Into::into);
        let (user, info, connection) = (user.clone(), info.clone(), Some(*number));
        let limits = Limits {
            members_of_room: terms.members,
            broadcasts_of_room: terms.broadcasts,
            history: terms.history,
            ..self.settings.limits
        };
        let person = Some(Person { user, info, name, connection });
        self.census.enter(room, person, &limits, now.instant).map_err(|full| {
            self.log("subscribe", full.reason(), now);
            match full {
                Full::Joins => Failure::TOO_MANY_REQUESTS.into(),
                _ => Failure::full(full.why()).into(),
            }
        })
    }

    /// What a client may do in a room: by a token for it, or by that of its connection.
    fn grant(&self, channel: &str, token: &str, now: Now) -> Result<Grant, Refusal> {
        let Some(identity) = &self.identity else {
            return Err(Failure::PERMISSION_DENIED.into());
        };
        if token.is_empty() || !matches!(self.settings.access, Access::Jwt(_)) {
            let Some(rights) = identity.scope.rights(channel) else {
                self.census.denies(Denied::OtherRoom);
                self.log("subscribe", Denied::OtherRoom.reason(), now);
                return Err(Failure::PERMISSION_DENIED.into());
            };
            return Ok(Grant { rights, expires_at: None, ttl_s: None });
        }
        let admission = self.check(token, "subscribe", now).map_err(|denied| match denied {
            Denied::NotValid(Invalid::Expired) => Failure::TOKEN_EXPIRED,
            _ => Failure::PERMISSION_DENIED,
        })?;
        let is_of_user =
            admission.user.as_deref().unwrap_or("") == identity.user.as_deref().unwrap_or("");
        if admission.channel.as_deref() != Some(channel) || !is_of_user {
            self.census.denies(Denied::OtherRoom);
            self.log("subscribe", Denied::OtherRoom.reason(), now);
            return Err(Failure::PERMISSION_DENIED.into());
        }
        let (expires_at, ttl_s) = (admission.expires_at(now), admission.ttl_s(now.unix_s));
        Ok(Grant { rights: Rights::ALL, expires_at, ttl_s })
    }

    /// Checks a token; empty: none. `what` asks for it.
    fn check(&self, token: &str, what: &'static str, now: Now) -> Result<Admission, Denied> {
        let given = || (!token.is_empty()).then_some(token.into());
        self.settings.access.checks(given, now.unix_s).inspect_err(|denied| {
            self.census.denies(*denied);
            self.log(what, denied.reason(), now);
        })
    }

    fn log(&self, what: &'static str, reason: &'static str, now: Now) {
        let of = "/connection/websocket";
        RefusedClient { what, reason, of }.log(&self.settings, &self.census, now);
    }
}
