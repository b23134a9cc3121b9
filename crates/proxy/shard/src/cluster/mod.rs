//! A Redis Cluster behind the proxy: what its nodes report of it, and which view counts. All of this is pure; what the
//! proxy does is in `proxy::cluster`. A hub whose broker is in a cluster uses [`SlotMaster`].

pub(crate) mod redirect;
pub(crate) mod renaming;
mod slot_master;
pub(crate) mod state;
pub(crate) mod topology;
pub(crate) mod view;
pub(crate) mod watch;

pub use slot_master::SlotMaster;
