//! A Redis Cluster behind the proxy: its slots are asked for (`slots`), and requests that a node did not apply are sent
//! again (`repeats`). Commands for all nodes need the slots as they are now (`fresh`).
//! Publish/subscribe may be sharded (`sharded`).

mod fresh;
mod repeats;
mod sharded;
mod slots;

pub(crate) use slots::{ASKED_FOR, LONGEST_SLOTS};
