//! A Redis Cluster behind the proxy: what its nodes report of it, and which view counts. All of this is pure; what the
//! proxy does is in `proxy::cluster`.

pub(crate) mod redirect;
pub(crate) mod renaming;
pub(crate) mod state;
pub(crate) mod topology;
pub(crate) mod view;
pub(crate) mod watch;
