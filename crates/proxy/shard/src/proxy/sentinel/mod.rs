//! What a core does with the Sentinels that manage the masters of its nodes: it asks them (`ask`), and checks that each
//! server to which it connects is a master (`role`).

mod ask;
mod role;

pub(crate) use role::ask_for_role;
