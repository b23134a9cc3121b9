//! What the proxies of all cores share.

use super::settings::Settings;
use std::sync::atomic::AtomicU64;

/// What the proxies of all cores share.
#[derive(Debug)]
pub struct Shared {
    /// What they are asked to do.
    pub settings: Settings,
    /// What they have counted.
    pub counts: Counts,
}

impl Shared {
    /// For the proxies of all cores.
    pub fn new(settings: Settings) -> Self {
        Shared { settings, counts: Counts::default() }
    }
}

/// What the proxies of all cores have counted since their start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Clients that have connected.
    pub connections: AtomicU64,
    /// Clients that have gone.
    pub disconnections: AtomicU64,
    /// Clients that were disconnected because they left too many bytes of replies unread.
    pub unread: AtomicU64,
    /// Connections to nodes that were lost, or could not be opened.
    pub lost: AtomicU64,
    /// Replies of nodes that did not come in time.
    pub timeouts: AtomicU64,
}
