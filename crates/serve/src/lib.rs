//! I/O models: how servers wait. One module per model, and a catalogue of services.
//!
//! A model runs any [`Program`](regatta_service::Program) in the style that fits the model. The
//! protocols are in `regatta-service`; this crate does not interpret any bytes.

mod asynchronous;
mod blocking;
mod burn;
mod catalogue;
mod children;
mod clock;
mod cluster;
mod delay;
mod delayed;
mod engines;
mod epoll;
mod file;
mod fork;
mod green;
mod host;
mod job;
mod letters;
mod local;
mod log;
mod mail;
mod members;
mod membership;
mod mesh;
mod model;
mod null;
mod offload;
mod open;
mod percore;
mod poll;
mod prefork;
mod reactor;
mod select;
mod sockets;
mod straight;
mod threads;
mod uring;

pub use catalogue::{HubHost, Service, Written, serve, serve_handicapped, serve_hub};
pub use delay::Delay;
pub use delayed::serve_delayed;
pub use engines::serve_engine;
pub use host::{Host, ServeError, Stop};
pub use members::serve_members;
pub use membership::Members;
pub use model::{Model, Traits};
pub use null::{Canned, serve_canned};
pub use regatta_engine::{Bounds, Memory as HubMemory, Policy};
pub use regatta_service::hub::{
    Access as HubAccess, Jwt, Limits as HubLimits, Origin, Settings as HubSettings,
};
pub use regatta_sys::limit::raise_open_files;
pub use straight::{serve_sequential, shared_counter};
