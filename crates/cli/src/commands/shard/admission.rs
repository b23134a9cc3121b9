//! Limits on the number of clients, of all and of one address.

use super::refused::{Reason, Refused};
use regatta_service::admission::{Admission, ClientLimits, Refusal};
use regatta_shard::Shared;
use std::{net::IpAddr, sync::Arc};

/// The errors that refused clients get; the first is that of Redis.
const ALL: &[u8] = b"-ERR max number of clients reached\r\n";
const PER_ADDRESS: &[u8] = b"-ERR max number of clients per address reached\r\n";

/// Options for the number of clients.
#[derive(Debug, clap::Args)]
pub struct AdmissionArgs {
    /// Maximum number of clients; 0: no limit. A client beyond it gets an error, and its connection is closed (with
    /// --max-connections, it waits instead). Not on threads, green, fork and prefork
    #[arg(long, default_value = "0", value_name = "N")]
    max_clients: usize,
    /// Maximum number of clients with the same address; 0: no limit. An IPv6 address counts by its first 64 bits.
    /// Clients of the Unix socket are not counted. Not on threads, green, fork and prefork
    #[arg(long, default_value = "0", value_name = "N")]
    max_clients_per_address: usize,
}

impl AdmissionArgs {
    /// The option that sets a limit, if one does.
    pub fn option(&self) -> Option<&'static str> {
        match (self.max_clients, self.max_clients_per_address) {
            (0, 0) => None,
            (0, _) => Some("--max-clients-per-address"),
            _ => Some("--max-clients"),
        }
    }

    /// The limits.
    pub fn limits(&self) -> ClientLimits {
        ClientLimits { all: self.max_clients, per_address: self.max_clients_per_address }
    }
}

/// Admits clients within these limits, and counts and prints those that are refused. `has_tls`: clients connect over
/// TLS, so they get no error, because that would need a handshake.
pub fn admission(
    limits: ClientLimits,
    shared: &Arc<Shared>,
    refused: &Refused,
    has_tls: bool,
) -> Arc<Admission> {
    let (shared, refused) = (Arc::clone(shared), refused.clone());
    let refuse = move |refusal: Refusal, from: Option<IpAddr>| {
        let from = from.map_or_else(String::new, |from| format!(", from {from}"));
        let (count, reason, limit, reply) = match refusal {
            Refusal::All(limit) => (&shared.counts.refused_max, Reason::MaxClients, limit, ALL),
            Refusal::PerAddress(limit) => {
                (&shared.counts.refused_per_address, Reason::PerAddress, limit, PER_ADDRESS)
            }
        };
        count.add(1);
        refused.note(reason, format!("limit {limit}{from}"));
        if has_tls { b"" } else { reply }
    };
    Arc::new(Admission::new(limits, Box::new(refuse)))
}
