//! Masters that Sentinels manage: what the Sentinels report, and which address counts. All of this is pure; what the proxy
//! does is in `proxy::sentinel`.

pub(crate) mod masters;
pub(crate) mod reported;
pub(crate) mod state;
