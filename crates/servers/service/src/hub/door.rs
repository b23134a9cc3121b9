//! Upgrade requests: the reply, and the room that the client enters.

use super::{
    access::Denied,
    census::{Census, Presence},
    compress::WANTED,
    origin::Origin,
    settings::Settings,
};
use crate::http::flow;
use regatta_engine::{Flow, RoomName};
use regatta_proto::{
    http1::{Date, Field, Fields, Method, Reply, Status, server::Request},
    websocket::{
        DeflateSettings,
        handshake::{Opening, Refusal},
    },
};
use std::sync::Arc;

/// The path of the hub.
const PATH: &str = "/ws";
/// A page for trying the hub.
const PAGE: Reply<'static> = Reply {
    content_type: "text/html; charset=utf-8",
    ..Reply::text(Status::Ok, include_bytes!("page.html"))
};
/// Maximum length of a room's or member's name, in bytes.
const LONGEST_NAME: usize = 128;

/// The path where messages are echoed unchanged.
const ECHO: &str = "/echo";

/// A client whose WebSocket was opened.
pub(super) struct Entered {
    /// The room it is in; `None` at `/echo`.
    pub place: Option<(RoomName, Presence)>,
    /// How messages may be compressed.
    pub agreed: Option<DeflateSettings>,
}

/// Answers a request. Returns the client that entered, if any, and the flow of the connection.
pub(super) fn answer(
    request: &Request<'_>,
    settings: &Settings,
    census: &Arc<Census>,
    date: &Date,
    out: &mut Vec<u8>,
) -> (Option<Entered>, Flow) {
    let room = room(request.path());
    let echoes = settings.echo && request.path() == ECHO;
    if room.is_none() && !echoes {
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
    match open(request, settings, census, room.as_ref(), date) {
        Ok((opening, presence)) => {
            opening.write(request.terms, date, out);
            let entered = Entered { place: room.zip(presence), agreed: opening.deflate };
            (Some(entered), Flow::Continue)
        }
        Err(NotOpened::Denied(denied)) => {
            let field = Field::new("WWW-Authenticate", denied.challenge()).expect("a valid field");
            let reply = Reply::text(Status::Unauthorized, denied.why().as_bytes());
            reply.write_with(&[field], request.terms, date, out);
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
    /// The token is missing or invalid.
    Denied(Denied),
    /// Another reason.
    Refused(Refusal),
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
    settings: &Settings,
    census: &Arc<Census>,
    room: Option<&RoomName>,
    date: &Date,
) -> Result<(Opening, Option<Presence>), NotOpened> {
    if !is_allowed(&request.fields, &settings.origins) {
        let why = "This origin is not allowed here.";
        return Err(Refusal { status: Status::Forbidden, why }.into());
    }
    settings.access.permits(&request.fields, request.query(), date.unix_s())?;
    let opening = Opening::read(request, settings.deflate.then_some(WANTED))?;
    let Some(room) = room else { return Ok((opening, None)) };
    let query = request.query().unwrap_or("").as_bytes();
    let name = form_urlencoded::parse(query).find(|(key, _)| key == "name").map(|(_, name)| name);
    let name = name.filter(|name| settings.presence && (1..=LONGEST_NAME).contains(&name.len()));
    // Last, so that a request refused for another reason is not counted.
    let presence = census
        .enter(room, name.as_deref(), &settings.limits)
        .map_err(|full| Refusal { status: Status::ServiceUnavailable, why: full.why() })?;
    Ok((opening, Some(presence)))
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
