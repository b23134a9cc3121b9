//! What can be asked of a hub.

use super::{message, receive::Hub, roster};
use crate::{
    protocol::{Asks, Order, Speech},
    script::{Conversations, Script, TooLarge},
};
use serde::{Deserialize, Serialize};

/// Where a hub is, unless the URL says otherwise.
const PATH: &str = "/ws";
/// Requests before the script repeats. All are equally long, and each is written as it is sent.
const EXCHANGES: usize = 64;

/// A workload for a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebSocketAsks {
    /// Each message goes to every member, the sender included, and the sender is told for how many.
    Broadcast,
    /// Each message comes back to its sender.
    Echo,
}

impl Asks for WebSocketAsks {
    type Dialect = Hub;

    fn name(&self) -> &str {
        match self {
            WebSocketAsks::Broadcast => "hub",
            WebSocketAsks::Echo => "hub-echo",
        }
    }

    fn service(&self) -> &str {
        WebSocketAsks::Broadcast.name()
    }

    fn compile(&self, order: &Order<'_>) -> Result<Speech<Hub>, TooLarge> {
        let mut script = Script::new(Conversations::Each(1));
        for _ in 0..EXCHANGES {
            script.push(&[0; message::FRAME], b"");
        }
        script.close(order.pipeline)?;
        let path = order.place.path.filter(|path| !path.is_empty()).unwrap_or(PATH);
        Ok(Speech::Own(Hub::new(*self == WebSocketAsks::Broadcast, script, order, path)))
    }

    fn shared_words(&self) -> usize {
        roster::WORDS
    }

    /// A hub may answer before it has delivered.
    fn limited(&self) -> usize {
        match self {
            WebSocketAsks::Broadcast => Hub::LAST_DELIVERIES,
            WebSocketAsks::Echo => 0,
        }
    }

    fn cost_per(&self) -> usize {
        match self {
            WebSocketAsks::Broadcast => Hub::DELIVERIES,
            WebSocketAsks::Echo => 0,
        }
    }
}
