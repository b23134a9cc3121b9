//! What a race stores: rounds, with lives, warm-ups and replies.

pub(crate) mod life;
pub(crate) mod machine_use;
pub(crate) mod network_use;
pub(crate) mod reply_seen;
pub(crate) mod round;
pub(crate) mod settling;
