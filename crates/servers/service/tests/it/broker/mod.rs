//! Hubs at one broker, without sockets: seeded simulations in which links are cut, stall or open only half, the broker
//! restarts or fails over, and hubs die. Some members may be clients of Centrifugo's protocol. What was promised to members is the checker, and planted faults show that it
//! finds them.

mod cable;
mod clients;
mod joined;
mod judge;
mod keys;
mod moved;
mod one_hub;
mod place;
mod planted;
mod presence;
mod recovery;
mod redis;
mod refused;
mod simulation;
mod stored;

use regatta_service::hub::{Broker, Place};
use std::sync::Arc;

/// A broker for the hub with this number.
fn broker(
    name: &str,
    place: Arc<dyn Place>,
    is_in_cluster: bool,
    node: u64,
    secret: u64,
) -> Broker {
    let (user, password, tls, health) = (None, None, None, Arc::default());
    let (name, prefix) = (name.to_owned(), "x".to_owned());
    Broker { name, place, user, password, tls, prefix, is_in_cluster, node, secret, health }
}
