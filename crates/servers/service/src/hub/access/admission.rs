//! What is known of a client that may open a WebSocket.

use super::rights::Scope;
use regatta_engine::Now;
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

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
    /// When it is disconnected, by the clock of the loop.
    pub fn expires_at(&self, now: Now) -> Option<Instant> {
        let left = (self.expires_s? - now.unix_s as f64).max(0.0);
        now.instant.checked_add(Duration::try_from_secs_f64(left).ok()?)
    }

    /// How long until the `exp` of its token, in seconds, at least 1; `None` without one.
    pub fn ttl_s(&self, unix_s: u64) -> Option<u64> {
        let left = self.expires_s? - LEEWAY as f64 - unix_s as f64;
        Some((left as u64).max(1))
    }
}
