//! Settings of a hub.

use super::{
    access::{Access, Origin},
    api::keys::Api,
    broker::Broker,
    census::Limits,
    rooms::RoomRule,
};
use regatta_engine::{Bounds, Policy};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Settings of a hub.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum size of a message, in bytes. A longer one closes its connection with code 1009.
    pub longest: usize,
    /// Origins whose pages may open a WebSocket; empty: all. A client that sends no `Origin` is not
    /// a page and is allowed (RFC 6454, 7.3; RFC 6455, 10.2).
    pub origins: Vec<Origin>,
    /// Which clients may open a WebSocket.
    pub access: Access,
    /// The HTTP API for backends, if there is one.
    pub api: Option<Arc<Api>>,
    /// The broker that joins it with other hubs. `None`: it serves its rooms alone. Then it must be restarted to get
    /// one.
    pub broker: Option<Arc<Broker>>,
    /// Maximum numbers of members and rooms.
    pub limits: Limits,
    /// Rules for some rooms, which replace [`Limits::members_of_room`], [`Limits::broadcasts_of_room`],
    /// [`Settings::presence`] and the policy of [`Settings::backlog`] there. The first that is for a room applies.
    pub rooms: Vec<RoomRule>,
    /// Whether members are notified when others join or leave their room. A member may choose a
    /// name: `?name=…`.
    pub presence: bool,
    /// Whether `/` serves a page for trying the hub in a browser.
    pub page: bool,
    /// Whether clients that offer permessage-deflate (RFC 7692) receive compressed broadcasts and
    /// may send compressed messages.
    pub deflate: bool,
    /// Whether `/echo` echoes every message unchanged, for tests of the WebSocket protocol itself.
    pub echo: bool,
    /// Whether clients of Centrifugo may connect at `/connection/websocket`.
    pub centrifuge: bool,
    /// A member that has been silent for this long is sent a ping, which any client answers with a
    /// pong. `None`: no pings.
    pub ping: Option<Duration>,
    /// A member that has been silent for this long, despite pings, is disconnected.
    pub silence: Duration,
    /// Limits on the broadcasts that wait for a slow member, beyond 64 KiB of output, and what
    /// happens when they are exceeded. Its memory limits all that members make the hub hold.
    pub backlog: Bounds,
    /// Writes a line for those who operate the hub.
    pub log: fn(&str),
    /// Reads the time at the end of a delivery, for the sample of how long these take; `None`: none is taken.
    pub clock: Option<fn() -> Instant>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            longest: 1 << 20,
            origins: Vec::new(),
            access: Access::Open,
            api: None,
            broker: None,
            limits: Limits::default(),
            rooms: Vec::new(),
            presence: false,
            page: false,
            deflate: false,
            echo: false,
            centrifuge: false,
            ping: Some(Duration::from_secs(20)),
            silence: Duration::from_secs(60),
            backlog: Bounds {
                bytes: 1 << 20,
                pushes: 10_000,
                policy: Policy::Close,
                counts: Arc::default(),
                memory: Arc::default(),
            },
            log: |_| (),
            clock: None,
        }
    }
}
