//! What can be set of a hub.

use super::{access::Access, census::Limits, origin::Origin};
use regatta_engine::{Bounds, Policy};
use std::{sync::Arc, time::Duration};

/// What can be set of a hub.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum size of a message, in bytes. A longer one closes its connection with 1009.
    pub longest: usize,
    /// Origins whose pages may open a WebSocket; all, if there are none. A
    /// client that names no origin is no page, and may (RFC 6454, 7.3; RFC 6455, 10.2).
    pub origins: Vec<Origin>,
    /// Who may open a WebSocket.
    pub access: Access,
    /// How many may be there.
    pub limits: Limits,
    /// The members of a room are told who comes and goes. A member may have a name: `?name=…`.
    pub presence: bool,
    /// There is a page at `/` for trying the hub in a browser.
    pub page: bool,
    /// Whoever offers permessage-deflate (RFC 7692) gets broadcasts compressed, and may send so.
    pub deflate: bool,
    /// At `/echo`, every message comes back as it is: for those who test WebSocket itself.
    pub echo: bool,
    /// A member of whom nothing was heard for so long is sent a ping, which any client answers by a pong.
    /// `None`: no pings.
    pub ping: Option<Duration>,
    /// A member of whom nothing was heard for so long, though it was sent pings, is closed.
    pub silence: Duration,
    /// How much waits for a member that reads slowly, beyond 64 KiB of its output, and what happens when
    /// more would.
    pub backlog: Bounds,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            longest: 1 << 20,
            origins: Vec::new(),
            access: Access::Open,
            limits: Limits::default(),
            presence: false,
            page: false,
            deflate: false,
            echo: false,
            ping: Some(Duration::from_secs(20)),
            silence: Duration::from_secs(60),
            backlog: Bounds {
                bytes: 1 << 20,
                pushes: 10_000,
                policy: Policy::Close,
                counts: Arc::default(),
            },
        }
    }
}
