//! The API of a hub: who may call it, and which publications came already.

use super::recent::Recent;
use crate::hub::access::is_same;
use regatta_proto::http1::Fields;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The API of a hub. Its methods are described in `docs/src/reference/hub.md`.
pub struct Api {
    key: Box<str>,
    /// The idempotency keys of recent publications.
    recent: Arc<Mutex<Recent>>,
}

/// Why a request is refused: its key is missing, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrongKey {
    Missing,
    Other,
}

impl WrongKey {
    /// The reason in one word, which never changes.
    pub fn reason(self) -> &'static str {
        match self {
            WrongKey::Missing => "api_key_missing",
            WrongKey::Other => "api_key_wrong",
        }
    }

    /// The text of the error reply.
    pub fn why(self) -> &'static str {
        match self {
            WrongKey::Missing => "The API key is missing; it is expected as X-API-Key.",
            WrongKey::Other => "The API key is wrong.",
        }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Creates the API. Requests must have this key, as `X-API-Key: KEY` or `Authorization: apikey KEY`.
    pub fn new(key: &str) -> Api {
        Api { key: key.into(), recent: Arc::default() }
    }

    /// An API with this key that knows the publications of another one, which it replaces.
    pub(in super::super) fn after(&self, before: &Api) -> Api {
        Api { key: self.key.clone(), recent: Arc::clone(&before.recent) }
    }

    /// Whether it has the key of another one.
    pub(in super::super) fn is_like(&self, other: &Api) -> bool {
        self.key == other.key
    }

    pub(super) fn recent(&self) -> MutexGuard<'_, Recent> {
        // Nothing panics while holding the lock.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn check(&self, fields: &Fields<'_>) -> Result<(), WrongKey> {
        let authorization = || {
            let (scheme, key) = fields.get("Authorization")?.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"apikey ").then(|| key.trim_ascii())
        };
        let key = fields.get("X-API-Key").or_else(authorization).ok_or(WrongKey::Missing)?;
        if is_same(key, self.key.as_bytes()) { Ok(()) } else { Err(WrongKey::Other) }
    }
}
