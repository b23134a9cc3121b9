//! What is known of a client that may open a WebSocket.

use super::rights::Scope;
use serde_json::value::RawValue;

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
}
