//! A Redis Cluster behind the proxy: its slots are asked for (`slots`), and requests that a node did not apply are sent
//! again (`repeats`).

mod repeats;
mod slots;

pub(crate) use slots::{ASKED_FOR, LONGEST_SLOTS};
