//! The methods of the API.

use super::{
    awaited::Awaited,
    keys::Api,
    recent::Full,
    reply::{Answer, Channel, Client, Failure, Named, Node, Publication, Response},
};
use crate::hub::{
    access::matches,
    broadcast::Broadcast,
    census::{Census, Elsewhere, LONGEST_NAME, Person, client_of},
    dismissal::Dismissal,
    history::{Asked, Page},
    message::present,
    rooms::Plan,
};
use regatta_engine::{Now, Post, RoomName};
use regatta_proto::websocket::CloseCode;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::{collections::BTreeMap, sync::Arc};

/// Maximum number of rooms of a broadcast, and of methods of a batch.
const MOST: usize = 1_000;
/// Bytes of replies of a batch from which on its other methods are refused.
const LONGEST_BATCH: usize = 1 << 20;
/// Maximum number of messages of a history in a reply, and bytes of them from which on no more follow.
const LONGEST_PAGE: (usize, usize) = (1_000, 1 << 20);
/// Maximum length of an idempotency key, in bytes.
const LONGEST_KEY: usize = 128;
/// Maximum length of the reason of a Close frame, in bytes (RFC 6455, 5.5).
const LONGEST_REASON: usize = 123;
/// The code with which members are disconnected, if the backend names none: Centrifugo's "force disconnect".
const DISMISSED: u16 = 3503;

/// A body that is not JSON, or not of the method's form.
pub(super) struct NotJson(pub String);

#[derive(Deserialize)]
struct Publish<'a> {
    channel: String,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
struct ToMany<'a> {
    channels: Vec<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
struct Of {
    channel: String,
}

#[derive(Deserialize)]
struct History {
    channel: String,
    /// Negative: as many as there may be.
    #[serde(default)]
    limit: i64,
    since: Option<Since>,
    #[serde(default)]
    reverse: bool,
}

#[derive(Deserialize)]
struct Since {
    #[serde(default)]
    offset: u64,
    /// Empty: any.
    #[serde(default)]
    epoch: String,
}

#[derive(Deserialize)]
struct Like {
    #[serde(default)]
    pattern: String,
}

#[derive(Deserialize)]
struct Disconnect {
    #[serde(default)]
    user: String,
    #[serde(default)]
    client: String,
    #[serde(default)]
    whitelist: Vec<String>,
    disconnect: Option<CloseWith>,
}

#[derive(Deserialize)]
struct CloseWith {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Unsubscribe {
    #[serde(default)]
    user: String,
    channel: String,
    #[serde(default)]
    client: String,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    commands: Vec<BTreeMap<String, &'a RawValue>>,
}

/// The members of a room.
pub(in super::super) struct Everybody {
    pub count: usize,
    /// The number of this hub, if it has a broker.
    pub node: Option<u64>,
    /// Those of this hub, by their numbers.
    pub here: Vec<(usize, Arc<Person>)>,
    /// Whether others are notified of each of these by name.
    pub are_named: bool,
    pub others: Arc<[Elsewhere]>,
}

impl Everybody {
    /// Those of a hub without a broker: at most so many.
    pub(in super::super) fn here(census: &Census, room: &RoomName, most: usize) -> Everybody {
        let here = census.people(room, most);
        Everybody { count: here.len(), node: None, here, are_named: true, others: Arc::new([]) }
    }

    /// Those that are known, each with its hub and its number there.
    fn known(&self) -> impl Iterator<Item = (Option<u64>, usize, &Person)> {
        let here = self.here.iter().map(|(number, person)| (self.node, *number, &**person));
        here.chain(self.others.iter().flat_map(|Elsewhere { node, listed, .. }| {
            listed.iter().map(|(place, person)| (Some(*node), person.number(*place), &**person))
        }))
    }

    /// Whether not all are known, or may leave without a notice of who it was.
    pub(in super::super) fn are_some_unknown(&self) -> bool {
        !self.are_named || self.others.iter().any(|other| other.listed.len() < other.count)
    }

    /// Those that are known, with their names for backends and clients.
    pub(in super::super) fn named(&self) -> impl Iterator<Item = (String, &Person)> {
        self.known().map(|(node, number, person)| (client_of(node, number), person))
    }

    /// How many users they are. Members without one count as one.
    pub(in super::super) fn users(&self) -> usize {
        let mut users: Vec<&str> = self.known().map(|(_, _, person)| person.user()).collect();
        users.sort_unstable();
        users.dedup();
        users.len()
    }
}

/// A backend that calls methods of a hub.
pub(in super::super) struct Backend<'a> {
    pub api: &'a Api,
    pub settings: &'a Plan,
    pub census: &'a Census,
    pub now: Now,
    /// What its calls post is appended here.
    pub posts: &'a mut Vec<Post<Broadcast>>,
    /// What its calls have sent to the broker, or what became of that.
    pub awaited: Option<Awaited>,
}

impl<'a> Backend<'a> {
    /// A backend that calls one method.
    pub(in super::super) fn new(
        api: &'a Api,
        settings: &'a Plan,
        census: &'a Census,
        now: Now,
        posts: &'a mut Vec<Post<Broadcast>>,
    ) -> Self {
        Backend { api, settings, census, now, posts, awaited: None }
    }

    /// Calls a method with the JSON of its arguments. Returns the JSON of the reply.
    pub(super) fn call(&mut self, method: &str, body: &[u8]) -> Result<String, NotJson> {
        let not_json =
            |error: &dyn std::fmt::Display| NotJson(format!("The content is wrong: {error}"));
        let text = str::from_utf8(body).map_err(|error| not_json(&error))?;
        // A method without arguments may have no content.
        let text = if text.trim_ascii().is_empty() { "{}" } else { text };
        let json = match method {
            "batch" => {
                let batch: Batch<'_> =
                    serde_json::from_str(text).map_err(|error| not_json(&error))?;
                self.batch(&batch)
            }
            _ => {
                let result = self.one(method, text).map_err(|error| not_json(&error))?;
                serde_json::to_string(&Response(result))
            }
        };
        Ok(json.expect("replies have a form in JSON"))
    }

    /// The reply to several methods. Each is an object with its name as the only key, and so is its result.
    fn batch(&mut self, batch: &Batch<'_>) -> serde_json::Result<String> {
        if batch.commands.len() > MOST {
            let why = format!("expected at most {MOST} commands");
            return serde_json::to_string(&Response(Err(Failure::bad(why))));
        }
        let (mut replies, mut length) = (Vec::new(), 0);
        for command in &batch.commands {
            let mut named = command.iter();
            let reply = match (named.next(), named.next()) {
                _ if length > LONGEST_BATCH => {
                    BTreeMap::from([("error", to_raw_value(&Failure::TOO_MANY)?)])
                }
                (Some((method, arguments)), None) => {
                    let malformed = |error: serde_json::Error| Err(Failure::bad(error.to_string()));
                    match self.one(method, arguments.get()).unwrap_or_else(malformed) {
                        Ok(result) => BTreeMap::from([(&**method, to_raw_value(&result)?)]),
                        Err(error) => BTreeMap::from([("error", to_raw_value(&error)?)]),
                    }
                }
                _ => {
                    let error = Failure::bad("expected one method in each command");
                    BTreeMap::from([("error", to_raw_value(&error)?)])
                }
            };
            length += reply.values().map(|json| json.get().len()).sum::<usize>();
            replies.push(reply);
        }
        serde_json::to_string(&BTreeMap::from([("replies", replies)]))
    }

    /// Calls a method other than `batch`. Fails if the arguments do not have its form.
    fn one(&mut self, method: &str, text: &str) -> serde_json::Result<Result<Answer, Failure>> {
        Ok(match method {
            "publish" => {
                let Publish { channel, data, idempotency_key } = serde_json::from_str(text)?;
                let responses = self.publish(&[channel], data, idempotency_key);
                responses.and_then(|mut one| one.pop().map_or(Ok(Answer::Done {}), |one| one.0))
            }
            "broadcast" => {
                let ToMany { channels, data, idempotency_key } = serde_json::from_str(text)?;
                let responses = self.publish(&channels, data, idempotency_key);
                responses.map(|responses| Answer::Broadcast { responses })
            }
            "presence" => self.presence(&serde_json::from_str::<Of>(text)?.channel),
            "presence_stats" => self.presence_stats(&serde_json::from_str::<Of>(text)?.channel),
            "channels" => self.channels(&serde_json::from_str::<Like>(text)?.pattern),
            "disconnect" => self.disconnect(serde_json::from_str(text)?),
            "unsubscribe" => self.unsubscribe(serde_json::from_str(text)?),
            "info" => self.info(),
            "history" => self.history(serde_json::from_str(text)?),
            // A member is in the room that it chose.
            "history_remove" | "subscribe" | "refresh" | "rpc" => Err(Failure::NOT_AVAILABLE),
            _ => Err(Failure::METHOD_NOT_FOUND),
        })
    }

    /// Publishes to all of these rooms, or to none. Returns the response for each.
    fn publish(
        &mut self,
        channels: &[String],
        data: Option<&RawValue>,
        idempotency_key: Option<String>,
    ) -> Result<Vec<Response>, Failure> {
        let Backend { api, settings, census, now, .. } = *self;
        let data = data.ok_or(Failure::bad("expected \"data\", in JSON"))?.get();
        if channels.len() > MOST {
            return Err(Failure::bad(format!("expected at most {MOST} channels")));
        }
        if data.len() > settings.longest {
            return Err(Failure::bad(format!(
                "expected at most {} bytes of data",
                settings.longest
            )));
        }
        let rooms = channels.iter().map(|channel| room(channel)).collect::<Result<Vec<_>, _>>()?;
        let mut are_new = vec![true; rooms.len()];
        if let Some(key) = idempotency_key.filter(|key| !key.is_empty()) {
            self.needs_all()?;
            if key.len() > LONGEST_KEY {
                return Err(Failure::bad("expected an idempotency key of at most 128 bytes"));
            }
            let names = rooms.iter().map(RoomName::as_str);
            are_new = match api.recent().are_new(names, &key, now.instant) {
                Ok(are_new) => are_new,
                Err(Full) => return Err(Failure::TOO_MANY),
            };
        }
        if settings.broker.is_some() {
            return self.send(rooms, data);
        }
        let sample = census.last.as_ref().and_then(|last| last.publication(now, settings.clock));
        let push = Broadcast::of_backend(data, settings.deflate, &settings.backlog.memory);
        let push = push.sampled(sample);
        let mut responses = Vec::new();
        for (room, is_new) in rooms.into_iter().zip(are_new) {
            let kept = if is_new { self.keep(&room, data) } else { None };
            let position = kept.as_ref().and_then(Broadcast::position);
            responses.push(Response(Ok(position.map_or(Answer::Done {}, Answer::published))));
            if is_new {
                census.published.add(1);
                self.posts.push(Post::To(room, kept.unwrap_or_else(|| push.clone())));
            }
        }
        Ok(responses)
    }

    /// Adds a message to the history of a room, if that is kept.
    fn keep(&self, room: &RoomName, data: &str) -> Option<Broadcast> {
        let Backend { settings, census, now, .. } = *self;
        let memory = &settings.backlog.memory;
        let frame = |at| Broadcast::kept(data, at, true, settings.deflate, memory);
        let limits = settings.terms(room.as_str()).history;
        census
            .with_history(room, limits, now.instant, |history| history.publish(now.instant, frame))
    }

    /// The messages of a room that are kept.
    fn history(&mut self, asked: History) -> Result<Answer, Failure> {
        let Backend { settings, census, now, .. } = *self;
        let room = room(&asked.channel)?;
        let (most, bytes) = LONGEST_PAGE;
        let page = Page {
            since: asked.since.as_ref().map(|since| since.offset),
            messages: usize::try_from(asked.limit).map_or(most, |limit| limit.min(most)),
            bytes,
            is_reverse: asked.reverse,
        };
        let limits = settings.terms(room.as_str()).history;
        let behind = asked.since.as_ref().filter(|since| !since.epoch.is_empty());
        let behind = behind.map(|since| Asked::of(&since.epoch, since.offset));
        let mut kept = None;
        if settings.broker.is_some() {
            if !census.asks_history(&room, limits, now.instant) {
                return Err(Failure::NOT_AVAILABLE);
            }
            kept = self.fetch(&room, page.wanted(behind))?;
        }
        let read = census
            .with_history(&room, limits, now.instant, |history| history.page(page, now.instant));
        let (position, messages) = read.ok_or(Failure::NOT_AVAILABLE)?;
        if kept.is_some_and(|kept| !position.continues(kept)) {
            // It has begun again since the answer, and nothing is known of its messages.
            return Err(Failure::NO_HISTORY);
        }
        let is_of_another = behind.is_some_and(|behind| behind.epoch != Some(position.epoch));
        let messages = messages.filter(|_| !is_of_another).ok_or(Failure::UNRECOVERABLE)?;
        let publications = messages.iter().filter_map(Publication::of).collect();
        let (offset, epoch) = (position.offset, position.epoch.to_string());
        Ok(Answer::History { publications, offset, epoch })
    }

    /// Fails on `cluster`, where each process knows only its own members.
    fn needs_all(&self) -> Result<(), Failure> {
        if self.census.knows_all() { Ok(()) } else { Err(Failure::NOT_AVAILABLE) }
    }

    fn presence(&mut self, channel: &str) -> Result<Answer, Failure> {
        let Some(everybody) = self.everybody(channel)? else { return Ok(Answer::Done {}) };
        let client = |(id, person): (String, &Person)| {
            let client = Client {
                client: id.clone(),
                user: person.user().to_owned(),
                conn_info: person.info.clone(),
                chan_info: person.name.as_deref().map(|name| Named { name: name.to_owned() }),
            };
            (id, client)
        };
        Ok(Answer::Presence { presence: everybody.named().map(client).collect() })
    }

    fn presence_stats(&mut self, channel: &str) -> Result<Answer, Failure> {
        let Some(everybody) = self.everybody(channel)? else { return Ok(Answer::Done {}) };
        let num_users = everybody.users();
        Ok(Answer::PresenceStats { num_clients: everybody.count, num_users })
    }

    /// The members of a room, at all hubs if there is a broker; `None`: the broker is asked first.
    fn everybody(&mut self, channel: &str) -> Result<Option<Everybody>, Failure> {
        let room = room(channel)?;
        if self.settings.broker.is_some() {
            return self.at_all_hubs(&room);
        }
        self.needs_all()?;
        Ok(Some(Everybody::here(self.census, &room, usize::MAX)))
    }

    /// The rooms that have members, of this pattern; empty: all.
    fn channels(&self, pattern: &str) -> Result<Answer, Failure> {
        self.needs_all()?;
        let rooms = self.census.occupied().into_iter();
        let rooms =
            rooms.map(|(room, num_clients)| (room.as_str().to_owned(), Channel { num_clients }));
        let channels =
            rooms.filter(|(room, _)| pattern.is_empty() || matches(pattern, room)).collect();
        Ok(Answer::Channels { channels })
    }

    fn disconnect(&mut self, asked: Disconnect) -> Result<Answer, Failure> {
        let CloseWith { code, reason } =
            asked.disconnect.unwrap_or(CloseWith { code: 0, reason: String::new() });
        if code != 0 && !(3000..5000).contains(&code) {
            return Err(Failure::bad("expected a disconnect code from 3000 to 4999"));
        }
        if reason.len() > LONGEST_REASON {
            return Err(Failure::bad("expected a reason of at most 123 bytes"));
        }
        let spared = asked.whitelist.iter().filter_map(|id| number(id).transpose());
        let spared = spared.collect::<Result<_, _>>()?;
        let dismissal = Dismissal {
            number: number(&asked.client)?,
            spared,
            code: CloseCode(if code == 0 { DISMISSED } else { code }),
            reason: if reason.is_empty() { "disconnected by a backend".to_owned() } else { reason },
            user: asked.user,
            only_leaves: false,
        };
        self.needs_all()?;
        self.needs_one(&dismissal)?;
        Ok(self.dismiss(None, dismissal))
    }

    /// A member is in one room, so it is disconnected.
    fn unsubscribe(&mut self, asked: Unsubscribe) -> Result<Answer, Failure> {
        let dismissal = Dismissal {
            number: number(&asked.client)?,
            spared: Vec::new(),
            code: CloseCode(DISMISSED),
            reason: "unsubscribed by a backend".to_owned(),
            user: asked.user,
            only_leaves: true,
        };
        self.needs_all()?;
        self.needs_one(&dismissal)?;
        let only = room(&asked.channel)?;
        Ok(self.dismiss(Some(&only), dismissal))
    }

    fn needs_one(&self, dismissal: &Dismissal) -> Result<(), Failure> {
        if dismissal.user.is_empty() && dismissal.number.is_none() {
            return Err(Failure::bad("expected a user or a client"));
        }
        Ok(())
    }

    /// Disconnects members of one room, or of all.
    fn dismiss(&mut self, only: Option<&RoomName>, dismissal: Dismissal) -> Answer {
        let dismissal = Arc::new(dismissal);
        let rooms = self.census.dismiss(&dismissal, only);
        let push = Broadcast::dismiss(dismissal);
        self.posts.extend(rooms.into_iter().map(|room| Post::To(room, push.clone())));
        Answer::Done {}
    }

    fn info(&self) -> Result<Answer, Failure> {
        self.needs_all()?;
        let census = self.census;
        let members = census.members();
        let node = Node {
            uid: "regatta",
            name: "regatta",
            version: env!("CARGO_PKG_VERSION"),
            num_clients: members,
            num_subs: members,
            num_users: census.users(),
            num_channels: census.occupied().len(),
        };
        Ok(Answer::Info { nodes: [node] })
    }
}

/// The room of a channel; the empty name is the lobby's.
fn room(channel: &str) -> Result<RoomName, Failure> {
    if channel.len() > LONGEST_NAME {
        return Err(Failure::bad("expected a channel of at most 128 bytes"));
    }
    Ok(RoomName::of(channel))
}

/// The number of a client; `None` for the empty text.
fn number(client: &str) -> Result<Option<usize>, Failure> {
    if client.is_empty() {
        return Ok(None);
    }
    let number = client.parse().map_err(|_| Failure::bad("expected a client as in `presence`"))?;
    Ok(Some(number))
}
