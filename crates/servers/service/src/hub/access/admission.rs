//! What is known of a client that may open a WebSocket.

use super::rights::Scope;
use serde_json::value::RawValue;

/// Tolerance for the times in a token, in seconds, because clocks differ.
pub(super) const LEEWAY: u64 = 30;

/// A client that may open a WebSocket, and what its token says about it.
#[derive(Debug, Default)]
pub(in super::super) struct Admission {
    /// `sub`: the user.
    pub user: Option<String>,
    /// `info`: what backends see of it, in JSON.
    pub info: Option<Box<RawValue>>,
    /// When it is disconnected, in seconds since 1970.
    pub expires_s: Option<f64>,
    /// Its rooms.
    pub scope: Scope,
    /// `channel`: the only room that the token is for.
    pub channel: Option<String>,
}

impl Admission {
    /// How long until the `exp` of its token, in seconds, at least 1; `None` without one.
    pub fn ttl_s(&self, unix_s: u64) -> Option<u64> {
        let left = self.expires_s? - LEEWAY as f64 - unix_s as f64;
        Some((left as u64).max(1))
    }
}
