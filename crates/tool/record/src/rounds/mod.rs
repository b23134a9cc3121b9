//! What a race stores: rounds, with lives, warm-ups and replies.

pub(crate) mod life;
pub(crate) mod reply_seen;
pub(crate) mod round;
pub(crate) mod settling;
