//! The API of a hub: who may call it, and which publications came already.

use super::recent::Recent;
use crate::hub::access::is_same;
use regatta_proto::http1::Fields;
use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The API of a hub. Its methods are described in `docs/src/reference/hub.md`.
pub struct Api {
    key: Box<str>,
    /// The idempotency keys of recent publications.
    recent: Mutex<Recent>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Creates the API. Requests must have this key, as `X-API-Key: KEY` or `Authorization: apikey KEY`.
    pub fn new(key: &str) -> Api {
        Api { key: key.into(), recent: Mutex::default() }
    }

    pub(super) fn recent(&self) -> MutexGuard<'_, Recent> {
        // Nothing panics while holding the lock.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_key(&self, fields: &Fields<'_>) -> bool {
        let authorization = || {
            let (scheme, key) = fields.get("Authorization")?.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"apikey ").then(|| key.trim_ascii())
        };
        let key = fields.get("X-API-Key").or_else(authorization);
        key.is_some_and(|key| is_same(key, self.key.as_bytes()))
    }
}
