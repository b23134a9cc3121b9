//! Access control: which clients may open a WebSocket.

mod admission;
mod invalid;
mod jwt;
mod origin;
mod rights;

pub(super) use admission::Admission;
pub(super) use invalid::Invalid;
pub use jwt::{InvalidKeySet, Jwt};
pub use origin::{InvalidOrigin, Origin};
pub(super) use rights::{Rights, Scope, matches};

use regatta_proto::http1::{Fields, Status};
use std::{borrow::Cow, fmt, sync::Arc};

/// Which clients may open a WebSocket. A token is sent in `Authorization: Bearer …` (RFC 6750, 2.1)
/// or, because pages cannot set header fields for a WebSocket, in the query as `access_token=…`
/// (2.3).
#[derive(Clone, Default)]
pub enum Access {
    /// All clients.
    #[default]
    Open,
    /// Clients with this token.
    Token(Box<str>),
    /// Clients with a JSON Web Token (RFC 7519) that is valid now according to its `exp` and `nbf`, if
    /// present. The keys are asked for with each client, because they may be renewed.
    Jwt(Arc<dyn Fn() -> Arc<Jwt> + Send + Sync>),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Open => "Open",
            Access::Token(_) => "Token",
            Access::Jwt(_) => "Jwt",
        })
    }
}

/// Why a client may not open a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// It is a page of another origin.
    Origin,
    /// The request has no token, or its Authorization field has another form.
    NoToken,
    /// The token is not valid.
    NotValid(Invalid),
    /// The token is not for this room.
    OtherRoom,
}

impl Access {
    /// Whether clients need no token.
    pub fn admits_everybody(&self) -> bool {
        matches!(self, Access::Open)
    }

    /// Checks whether a request with these fields and this query may open a WebSocket now.
    pub(super) fn admits(
        &self,
        fields: &Fields<'_>,
        query: Option<&str>,
        unix_s: u64,
    ) -> Result<Admission, Denied> {
        self.checks(|| token(fields, query), unix_s)
    }

    /// Checks whether a client with this token may connect now.
    pub(super) fn checks<'a>(
        &self,
        token: impl Fn() -> Option<Cow<'a, str>>,
        unix_s: u64,
    ) -> Result<Admission, Denied> {
        let token = || token().ok_or(Denied::NoToken);
        match self {
            Access::Open => Ok(Admission::default()),
            Access::Token(expected) if is_same(token()?.as_bytes(), expected.as_bytes()) => {
                Ok(Admission::default())
            }
            Access::Token(_) => Err(Denied::NotValid(Invalid::Wrong)),
            Access::Jwt(keys) => keys().read(&token()?, unix_s).map_err(Denied::NotValid),
        }
    }
}

impl Denied {
    /// The names of the reasons in the metrics.
    pub const NAMES: [&str; 5] =
        ["origin", "no_token", "token_not_valid", "other_room", Denied::API_KEY];

    /// The name for requests to the API without the right key.
    const API_KEY: &str = "api_key";

    /// Its name in the metrics, as an index of [`Denied::NAMES`].
    pub fn kind(self) -> usize {
        match self {
            Denied::Origin => 0,
            Denied::NoToken => 1,
            Denied::NotValid(_) => 2,
            Denied::OtherRoom => 3,
        }
    }

    /// The reason in one word, which never changes: that of the metrics, or why the token is not valid.
    pub fn reason(self) -> &'static str {
        match self {
            Denied::NotValid(why) => why.reason(),
            _ => Denied::NAMES[self.kind()],
        }
    }

    /// The text of the error reply.
    pub fn why(self) -> &'static str {
        match self {
            Denied::Origin => "This origin is not allowed here.",
            Denied::NoToken => {
                "A token is needed, in `Authorization: Bearer` or as access_token in the query."
            }
            Denied::NotValid(why) => why.why(),
            Denied::OtherRoom => "The token is not for this room.",
        }
    }

    /// The status of the error reply, and the value of its WWW-Authenticate, if a token may help (RFC
    /// 6750, 3.1).
    pub fn challenge(self) -> (Status, Option<&'static str>) {
        match self {
            Denied::Origin => (Status::Forbidden, None),
            Denied::NoToken => (Status::Unauthorized, Some("Bearer")),
            Denied::NotValid(_) => (Status::Unauthorized, Some("Bearer error=\"invalid_token\"")),
            Denied::OtherRoom => (Status::Forbidden, Some("Bearer error=\"insufficient_scope\"")),
        }
    }
}

fn token<'a>(fields: &Fields<'a>, query: Option<&'a str>) -> Option<Cow<'a, str>> {
    match fields.get("Authorization") {
        Some(value) => {
            let (scheme, token) = std::str::from_utf8(value).ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim().into())
        }
        None => {
            let mut pairs = form_urlencoded::parse(query?.as_bytes());
            pairs.find_map(|(key, value)| (key == "access_token").then_some(value))
        }
    }
}

/// Compares in a time that does not depend on where a difference is.
pub(super) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
