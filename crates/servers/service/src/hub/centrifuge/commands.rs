//! What commands do: which handler each has, and messages of clients.

use super::{
    client::{Client, Turn},
    codes::{Disconnect, Failure, Refusal},
    pending::{Waiter, What},
    reply::{Answer, write_answer, write_failure},
    request::{Command, Publish},
};
use crate::hub::{access::Rights, broadcast::Broadcast, census::LONGEST_NAME};
use regatta_engine::{Post, RoomName};

impl Client {
    /// Handles a line. Fails if the connection must be closed.
    pub(super) fn line(&mut self, turn: &mut Turn<'_>, line: &str) -> Result<(), Disconnect> {
        let (id, command) = match Command::read(line) {
            Ok(read) => read,
            Err(why) => {
                self.census.malformed.add(1);
                return Err(why);
            }
        };
        if matches!(command, Command::Pong) {
            return Ok(());
        }
        let done = match (self.identity.is_some(), command) {
            (false, Command::Connect(request)) => self.connect(turn, &request).map(Some),
            (false, _) => Err(Disconnect::bad("bad request: expected connect first").into()),
            (true, Command::Connect(_)) => {
                Err(Disconnect::bad("bad request: it is connected already").into())
            }
            (true, ref command) if !self.may_command(turn, command) => {
                Err(Failure::TOO_MANY_REQUESTS.into())
            }
            (true, command) => self.carry_out(turn, id, command),
        };
        match done {
            Ok(Some(answer)) if !self.is_over() => write_answer(id, &answer, turn.out),
            Ok(_) => {}
            Err(Refusal::Fails(failure)) => write_failure(id, &failure, turn.out),
            Err(Refusal::Closes(why)) => return Err(why),
        }
        Ok(())
    }

    fn may_command(&mut self, turn: &Turn<'_>, command: &Command<'_>) -> bool {
        let rate = self.settings.limits.messages_of_member;
        let may_wait = matches!(
            command,
            Command::Publish(_)
                | Command::Subscribe(_)
                | Command::Presence(_)
                | Command::PresenceStats(_)
                | Command::History(_)
        );
        !(may_wait && self.pending.is_overfull())
            && rate.is_none_or(|rate| self.commands.take(rate, turn.now.instant))
    }

    /// Carries out a command of a connected client. Returns its answer, unless it is written already, or waits for the
    /// broker.
    fn carry_out(
        &mut self,
        turn: &mut Turn<'_>,
        id: u32,
        command: Command<'_>,
    ) -> Result<Option<Answer>, Refusal> {
        match command {
            Command::Subscribe(request) => self.subscribe(turn, id, &request).map(|()| None),
            Command::Unsubscribe(request) => self.unsubscribe(turn, &request.channel).map(Some),
            Command::Publish(request) => self.publish(turn, id, &request),
            Command::Presence(request) => self.presence(turn, id, &request.channel, What::Presence),
            Command::PresenceStats(request) => {
                self.presence(turn, id, &request.channel, What::PresenceStats)
            }
            Command::History(request) => self.history(turn, id, &request),
            Command::Refresh(request) => self.refresh(turn, &request).map(Some),
            Command::SubRefresh(request) => self.sub_refresh(turn, &request).map(Some),
            Command::Rpc => Err(Failure::NOT_AVAILABLE.into()),
            Command::Pong | Command::Connect(_) | Command::Unknown => {
                Err(Failure::METHOD_NOT_FOUND.into())
            }
        }
    }

    fn unsubscribe(&mut self, turn: &mut Turn<'_>, channel: &str) -> Result<Answer, Refusal> {
        let room = room(channel)?;
        self.leave_room(turn, room, &Failure::ENDED);
        Ok(Answer::Unsubscribe {})
    }

    fn publish(
        &mut self,
        turn: &mut Turn<'_>,
        id: u32,
        request: &Publish<'_>,
    ) -> Result<Option<Answer>, Refusal> {
        let room = room(&request.channel)?;
        let data = request.data.ok_or(Failure::bad("expected \"data\", in JSON"))?.get();
        let terms = self.settings.terms(room.as_str());
        let subscription = self.rooms.get(&room);
        let of_token = || self.identity.as_ref()?.scope.rights(room.as_str());
        let rights = subscription.map(|one| one.rights).filter(|rights| rights.sends);
        let sends = rights.or_else(of_token).is_some_and(|Rights { sends, .. }| sends);
        if !sends || !terms.members_publish {
            return Err(Failure::PERMISSION_DENIED.into());
        }
        let now = turn.now.instant;
        let may = match subscription {
            Some(one) => one.presence.may_broadcast(now),
            None => self.census.may_broadcast(&room, terms.broadcasts, now),
        };
        if !may {
            return Err(Failure::TOO_MANY_REQUESTS.into());
        }
        if self.has_broker() {
            // Its own copy comes back from there.
            self.census.broadcasts.add(1);
            let push = Broadcast::outgoing(data, false, &self.settings.backlog.memory);
            self.asks(turn, Waiter { id, room, what: What::Publish(data.len()) }, push);
            return Ok(None);
        }
        self.send(turn, &room, data);
        Ok(Some(Answer::Publish {}))
    }

    /// Sends data to all members of a room, of which this client may be one.
    fn send(&mut self, turn: &mut Turn<'_>, room: &RoomName, data: &str) {
        let (now, settings) = (turn.now, &self.settings);
        let memory = &settings.backlog.memory;
        let number = self.census.broadcasts.add(1);
        // Its deliveries are counted where they happen.
        let frame = |at| Broadcast::kept(data, at, true, settings.deflate, memory);
        let history = match self.rooms.get(room) {
            Some(one) => one.presence.history().map(|of| of.publish(now.instant, frame)),
            None => {
                let limits = settings.terms(room.as_str()).history;
                let publish =
                    |of: &crate::hub::history::RoomHistory| of.publish(now.instant, frame);
                self.census.with_history(room, limits, now.instant, publish)
            }
        };
        let push = history.unwrap_or_else(|| {
            let last = self.census.last.as_ref();
            let sample = last.and_then(|last| last.message(number, now, settings.clock));
            Broadcast::of_backend(data, settings.deflate, memory).sampled(sample)
        });
        turn.posts.push(Post::To(room.clone(), push.clone()));
        // Its own copy, which comes in the order of the room.
        self.on_push(now, room, &push, turn.out);
    }
}

/// The room of a channel.
pub(super) fn room(channel: &str) -> Result<RoomName, Refusal> {
    if channel.is_empty() {
        return Err(Disconnect::bad("bad request: a channel has a name").into());
    }
    if channel.len() > LONGEST_NAME {
        return Err(Failure::bad("expected a channel of at most 128 bytes").into());
    }
    Ok(RoomName::of(channel))
}
