//! RESP, what Redis and its like speak
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>), as the workload `shard` asks it.
//!
//! Each client, that is the connection of a slot, has keys to itself. Its replies come in the order of its
//! requests, so each follows from those before it: a `GET` finds the value of the last acknowledged `SET`.
//! `names` has the bytes of keys and values, of which every one says who wrote it where and when;
//! `private` compares replies with what must come; `opening` stores first values, so that it is known what
//! the keys hold. If all clients share their keys, `shared` and `log` write down what each of them saw, and
//! [`crate::history`] decides at the end whether all of it can be explained.
//!
//! Nothing is kept of a connection that was lost while something was owed: what was asked last may be done
//! at any later time. The next connection of the slot has keys of its own. Where errors are tolerated, `doubt`
//! checks what can still be known of the keys of a command that failed.

mod asks;
mod built_in;
mod commands;
mod doubt;
mod exchanges;
mod file;
mod framing;
mod keys;
mod log;
mod mix;
mod names;
mod opening;
mod private;
mod receive;
mod shared;
mod talk;
#[cfg(test)]
mod tests;
mod wrong;

pub use asks::RedisAsks;
pub use receive::Redis;

use crate::{
    protocol::{Protocol, Row, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct Resp;

impl Protocol for Resp {
    type Asks = RedisAsks;

    const ROW: Row = Row {
        name: "redis",
        schemes: &[
            Scheme { name: "redis", port: Some(6379), tls: false },
            Scheme { name: "rediss", port: Some(6379), tls: true },
        ],
        alpn: None,
        url: "redis(s)://HOST[:PORT][/DATABASE]",
        paths: true,
        adapters: &[],
        knock: None,
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
