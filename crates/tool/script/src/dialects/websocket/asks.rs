//! Workloads for a hub.

use super::{adapters::Adapter, receive::Hub, roster, terms::Terms};
use crate::{
    protocol::{Asks, CompileOptions, Pushes, Speech},
    script::{Conversations, Script, TooLarge},
};
use serde::{Deserialize, Serialize};

/// The default path of a hub.
const PATH: &str = "/ws";
/// Number of requests before the script repeats. All have the same length; their bytes are generated
/// when they are sent.
const EXCHANGES: usize = 64;

/// A workload for a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebSocketAsks {
    /// Each message goes to every member, including the sender. The sender receives the number of
    /// listeners.
    Broadcast,
    /// Each message is sent back to its sender.
    Echo,
    /// Broadcasts in another hub's protocol on top of WebSocket.
    Through(Adapter),
}

impl WebSocketAsks {
    fn adapter(self) -> Option<Adapter> {
        match self {
            WebSocketAsks::Through(adapter) => Some(adapter),
            _ => None,
        }
    }
}

impl Asks for WebSocketAsks {
    type Dialect = Hub;

    fn name(&self) -> &str {
        match self {
            WebSocketAsks::Broadcast | WebSocketAsks::Through(_) => "hub",
            WebSocketAsks::Echo => "hub-echo",
        }
    }

    fn service(&self) -> &str {
        WebSocketAsks::Broadcast.name()
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Hub>, TooLarge> {
        let adapter = self.adapter();
        let mut script = Script::new(Conversations::Each(1));
        for _ in 0..EXCHANGES {
            script.push(&vec![0; Hub::frame_bytes(adapter)], b"");
        }
        script.close(order.pipeline)?;
        let usual = adapter.map_or(PATH, Adapter::path);
        let path = order.place.path.filter(|path| !path.is_empty()).unwrap_or(usual);
        let Pushes { in_one_order, may_be_lost, tolerates, .. } = order.pushes;
        // With a connection for each request, members only join.
        let broadcasts = *self != WebSocketAsks::Echo && !order.place.closes;
        let terms = Terms { broadcasts, adapter, in_one_order, may_be_lost, tolerates };
        Ok(Speech::Own(Hub::new(terms, script, order, path)))
    }

    fn shared_words(&self) -> usize {
        roster::WORDS
    }

    fn adapted(&self, adapter: &str) -> Option<WebSocketAsks> {
        match self {
            WebSocketAsks::Echo => None,
            _ => Adapter::parse(adapter).map(WebSocketAsks::Through),
        }
    }

    /// Deliveries to the last member, because a hub may reply before it has delivered.
    fn limited(&self) -> usize {
        match self {
            WebSocketAsks::Broadcast | WebSocketAsks::Through(_) => Hub::LAST_DELIVERIES,
            WebSocketAsks::Echo => 0,
        }
    }

    fn cost_per(&self) -> usize {
        match self {
            WebSocketAsks::Broadcast | WebSocketAsks::Through(_) => Hub::DELIVERIES,
            WebSocketAsks::Echo => 0,
        }
    }
}
