//! The nodes, connections to them, and the reasons why one is lost. What clients get then is in `proxy::node_lost`.

pub(crate) mod described;
pub(crate) mod kept;
pub(crate) mod loss_reason;
pub(crate) mod nodes;
pub(crate) mod pools;
pub(crate) mod upstream;
