//! Masters that Sentinels manage: what the Sentinels report, and which address counts. All of this is pure; what the proxy
//! does is in `proxy::sentinel`. A hub whose broker Sentinels manage uses [`Masters`], too.

pub(crate) mod masters;
pub(crate) mod reported;
pub(crate) mod state;

pub use masters::{Masters, Question, SentinelCounts, Switches};
pub use reported::Reported;
