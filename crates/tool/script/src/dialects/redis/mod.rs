//! RESP, the protocol of Redis and compatible servers
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>), as used by the workload `shard`.
//!
//! Each client, i.e. the connection of a slot, has its own keys. Its replies arrive in the order of its
//! requests, so each reply follows from the commands before it: a `GET` finds the value of the last
//! acknowledged `SET`. `names` generates the bytes of keys and values; each value names the client, key
//! and request that wrote it. `private` compares replies with the expected ones. `opening` stores
//! initial values, so that the content of all keys is known. If all clients share their keys, `shared`
//! and `log` record what each client saw, and [`crate::history`] decides at the end whether all of it
//! can be explained.
//!
//! All state of a connection that was lost with requests in flight is discarded, because these requests
//! may be executed at any later time. The next connection of the slot has new keys, unless all clients
//! share them. If errors are tolerated, `doubt` checks what is still known of the keys of a failed
//! command.

mod asks;
mod built_in;
mod commands;
mod exchanges;
mod file;
mod keys;
mod mix;
mod names;
mod reply;

pub use asks::RedisAsks;
pub use reply::receive::Redis;

use crate::{
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct Resp;

impl Protocol for Resp {
    type Asks = RedisAsks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "redis",
        schemes: &[
            Scheme { name: "redis", port: Some(6379), tls: false },
            Scheme { name: "rediss", port: Some(6379), tls: true },
        ],
        alpn: None,
        url: "redis(s)://HOST[:PORT][/DATABASE]",
        paths: true,
        adapters: &[],
        readiness_probe: None,
        greeting: Greeting {
            named: "the protocol of Redis",
            sends: |_| "commands of Redis",
            remedy: "`--workload shard`",
            asks: |_, _| b"*1\r\n$4\r\nPING\r\n".to_vec(),
            is_spoken: |answer| {
                let starts: [&[u8]; 4] = [b"+PONG\r", b"-NOAUTH ", b"-NOPERM ", b"-DENIED "];
                starts.iter().any(|start| answer.starts_with(start))
            },
        },
    };

    fn built_in() -> Vec<RedisAsks> {
        vec![RedisAsks::shard()]
    }

    fn usual(_: Option<&str>) -> RedisAsks {
        RedisAsks::shard()
    }

    fn read(file: FileText<'_>) -> Result<RedisAsks, String> {
        RedisAsks::read(file)
    }
}
