//! Upgrade requests: the reply, and the room that the client enters.

use super::{
    access::{Admission, Denied, Origin},
    census::{Census, Full, LONGEST_NAME, Limits, Person, Presence},
    compress::WANTED,
    history::{Asked, MalformedPosition},
    refusal::RefusedClient,
    rooms::{Plan, RoomTerms},
};
use crate::http::flow;
use regatta_engine::{Flow, Now, RoomName};
use regatta_proto::{
    http1::{Date, Field, Fields, Method, Reply, Status, Terms, server::Request},
    websocket::{
        DeflateSettings,
        handshake::{Opening, Refusal},
    },
};
use std::{borrow::Cow, sync::Arc, time::Instant};

/// The path of the hub.
const PATH: &str = "/ws";
/// A page for trying the hub.
const PAGE: Reply<'static> = Reply {
    content_type: "text/html; charset=utf-8",
    ..Reply::text(Status::Ok, include_bytes!("page.html"))
};

/// The path where messages are echoed unchanged.
const ECHO: &str = "/echo";
/// The path of the clients of Centrifugo, where there are several rooms in one connection.
const CENTRIFUGE: &str = "/connection/websocket";

/// A client whose WebSocket was opened.
pub(super) struct Entered {
    /// The room it is in; `None` at `/echo`.
    pub place: Option<(RoomName, Presence)>,
    /// What holds in the room.
    pub terms: Arc<RoomTerms>,
    /// How messages may be compressed.
    pub agreed: Option<DeflateSettings>,
    /// Whether it may send messages to its room.
    pub sends: bool,
    /// When its token expires.
    pub expires_at: Option<Instant>,
    /// The position behind which it wants the messages of its room.
    pub asked: Option<Asked>,
    /// It speaks the protocol of Centrifugo, and names its rooms and its token later.
    pub is_of_centrifuge: bool,
}

impl Entered {
    /// A client of Centrifugo that is in no room yet.
    fn of_centrifuge(settings: &Plan) -> Entered {
        Entered {
            place: None,
            terms: Arc::clone(settings.usual()),
            agreed: None,
            sends: false,
            expires_at: None,
            asked: None,
            is_of_centrifuge: true,
        }
    }
}

/// Answers a request. Returns the client that entered, if any, and the flow of the connection.
pub(super) fn answer(
    request: &Request<'_>,
    settings: &Plan,
    census: &Arc<Census>,
    now: Now,
    out: &mut Vec<u8>,
) -> (Option<Entered>, Flow) {
    let date = &Date::at(now.unix_s);
    let room = room(request.path());
    let echoes = settings.echo && request.path() == ECHO;
    let is_of_centrifuge = settings.centrifuge && request.path() == CENTRIFUGE;
    if room.is_none() && !echoes && !is_of_centrifuge {
        match request.method {
            _ if !settings.page || request.path() != "/" => {
                Reply::not_found().write(request.terms, date, out);
            }
            Method::Get | Method::Head => {
                PAGE.write_with(&[policy()], request.terms, date, out);
            }
            _ => Reply::method_not_allowed("GET, HEAD").write(request.terms, date, out),
        }
        return (None, flow(request.terms));
    }
    let refused = |reason| {
        let of = request.path();
        RefusedClient { what: "join", reason, of }.log(settings, census, now);
    };
    match open(request, settings, census, room, now) {
        Ok((opening, entered)) => {
            opening.write(request.terms, date, out);
            (Some(entered), Flow::Continue)
        }
        Err(NotOpened::Denied(denied)) => {
            census.denies(denied);
            refused(denied.reason());
            let (status, challenge) = denied.challenge();
            let field = |value| Field::new("WWW-Authenticate", value).expect("a valid field");
            let fields: Vec<Field<'_>> = challenge.map(field).into_iter().collect();
            let text = format!("{}: {}", denied.reason(), denied.why());
            let reply = Reply::text(status, text.as_bytes());
            // Checking a token takes CPU, so the next one needs another connection.
            let terms = Terms { keep_alive: false, ..request.terms };
            reply.write_with(&fields, terms, date, out);
            (None, flow(terms))
        }
        Err(NotOpened::Full(full)) => {
            refused(full.reason());
            let after = census.retry_after_s().to_string();
            let field = Field::new("Retry-After", &after).expect("a valid field");
            let reply = Reply::text(Status::ServiceUnavailable, full.why().as_bytes());
            reply.write_with(&[field], request.terms, date, out);
            (None, flow(request.terms))
        }
        Err(NotOpened::Malformed) => {
            refused("position");
            let why = b"Expected both or neither of epoch=... and offset=N in the query.";
            Reply::text(Status::BadRequest, why).write(request.terms, date, out);
            (None, flow(request.terms))
        }
        Err(NotOpened::Refused(refusal)) => {
            refusal.write(request.terms, date, out);
            (None, flow(request.terms))
        }
    }
}

/// Why a WebSocket was not opened.
enum NotOpened {
    /// It may not, because of its origin or token.
    Denied(Denied),
    /// There is no place for it.
    Full(Full),
    /// It names a part of a position.
    Malformed,
    /// Another reason.
    Refused(Refusal),
}

impl From<MalformedPosition> for NotOpened {
    fn from(_: MalformedPosition) -> Self {
        NotOpened::Malformed
    }
}

impl From<Full> for NotOpened {
    fn from(full: Full) -> Self {
        NotOpened::Full(full)
    }
}

impl From<Denied> for NotOpened {
    fn from(denied: Denied) -> Self {
        NotOpened::Denied(denied)
    }
}

impl From<Refusal> for NotOpened {
    fn from(refusal: Refusal) -> Self {
        NotOpened::Refused(refusal)
    }
}

fn open(
    request: &Request<'_>,
    settings: &Plan,
    census: &Arc<Census>,
    room: Option<RoomName>,
    now: Now,
) -> Result<(Opening, Entered), NotOpened> {
    if !is_allowed(&request.fields, &settings.origins) {
        return Err(Denied::Origin.into());
    }
    if settings.centrifuge && request.path() == CENTRIFUGE {
        return Ok((Opening::read(request, None)?, Entered::of_centrifuge(settings)));
    }
    let admission = settings.access.admits(&request.fields, request.query(), now.unix_s)?;
    let rights = match &room {
        Some(room) => admission.scope.rights(room.as_str()),
        None => admission.scope.rights(request.path()),
    };
    let sends = rights.ok_or(Denied::OtherRoom)?.sends;
    let opening = Opening::read(request, settings.deflate.then_some(WANTED))?;
    let (agreed, expires_at) = (opening.deflate, admission.expires_at(now));
    let terms = room.as_ref().map_or(settings.usual(), |room| settings.terms(room.as_str()));
    let asked = match Asked::in_query(request.query()) {
        _ if room.is_none() => None,
        // Without a history, the client may use these words as it likes.
        Err(_) if !terms.history.are_kept() => None,
        asked => asked?,
    };
    let place = match room {
        None => None,
        Some(room) => {
            let person = person(admission, request.query(), terms);
            let limits = Limits {
                members_of_room: terms.members,
                broadcasts_of_room: terms.broadcasts,
                history: terms.history,
                ..settings.limits
            };
            // Last, so that a request refused for another reason is not counted.
            let presence = census.enter(&room, person, &limits, now.instant)?;
            Some((room, presence))
        }
    };
    let terms = Arc::clone(terms);
    let is_of_centrifuge = false;
    Ok((opening, Entered { place, terms, agreed, sends, expires_at, asked, is_of_centrifuge }))
}

/// Who a client is; `None` if nothing is known of it. It chooses a name if members are announced, except where they may
/// not publish: all members would receive the name. There it is the user of its token.
fn person(admission: Admission, query: Option<&str>, terms: &RoomTerms) -> Option<Person> {
    let Admission { user, info, .. } = admission;
    let name = if terms.members_publish {
        let mut pairs = form_urlencoded::parse(query.unwrap_or("").as_bytes());
        pairs.find(|(key, _)| key == "name").map(|(_, name)| name)
    } else {
        user.as_deref().map(Cow::Borrowed)
    };
    let is_fine = |name: &str| terms.presence && (1..=LONGEST_NAME).contains(&name.len());
    let name: Option<Arc<str>> = name.filter(|name| is_fine(name)).map(|name| (&*name).into());
    if name.is_none() && user.is_none() && info.is_none() {
        return None;
    }
    Some(Person { user: user.map(Into::into), info, name, connection: None })
}

/// The policy of the page: it loads nothing, and connects only to this hub.
fn policy() -> Field<'static> {
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                  connect-src 'self'; base-uri 'none'; form-action 'none'";
    Field::new("Content-Security-Policy", policy).expect("a valid field")
}

/// Returns whether a request's `Origin` is allowed.
fn is_allowed(fields: &Fields<'_>, origins: &[Origin]) -> bool {
    let of_page = |value| std::str::from_utf8(value).ok()?.parse::<Origin>().ok();
    let is_one = |value| of_page(value).is_some_and(|origin| origins.contains(&origin));
    origins.is_empty() || fields.get("Origin").is_none_or(is_one)
}

/// Returns the room of a path: `/ws` is the lobby, `/ws/NAME` a room. The name is not decoded.
fn room(path: &str) -> Option<RoomName> {
    let rest = path.strip_prefix(PATH)?;
    if rest.is_empty() {
        return Some(RoomName::LOBBY);
    }
    let name = rest.strip_prefix('/')?;
    (!name.is_empty() && name.len() <= LONGEST_NAME).then(|| RoomName::of(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::settings::Settings;

    #[test]
    fn nobody_chooses_a_name_where_members_may_not_publish() {
        let rule = |pattern: &str, publish| crate::hub::RoomRule {
            publish,
            presence: Some(true),
            ..crate::hub::RoomRule::new(pattern.parse().unwrap())
        };
        let (api, members) = (crate::hub::Publish::Api, crate::hub::Publish::Members);
        let rooms = vec![rule("news", api), rule("chat", members)];
        let plan = Plan::new(Settings { rooms, ..Settings::default() });
        let name = |room: &str, user: Option<&str>| {
            let user = user.map(str::to_owned);
            let admission = Admission { user, ..Admission::default() };
            person(admission, Some("name=x"), plan.terms(room)).and_then(|person| person.name)
        };
        assert_eq!(name("chat", Some("ann")).as_deref(), Some("x"));
        assert_eq!(name("news", Some("ann")).as_deref(), Some("ann"));
        assert_eq!(name("news", None), None);
        assert_eq!(name("other", Some("ann")), None);
    }
}
