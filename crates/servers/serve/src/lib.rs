//! I/O models: how servers wait. One module per model, and a catalogue of services.
//!
//! A model runs any [`Program`](regatta_service::Program) in the style that fits the model. The
//! protocols are in `regatta-service`; this crate does not interpret any bytes.
//!
//! # Where things are
//!
//! - `models`: the I/O models.
//! - `host`: what every model gets: where to listen, its limits, and when to stop; `unix_socket`: a Unix socket.
//! - `engines`, `own_connections` and `members`: which models run engines, sequential programs, and sessions that
//!   post to each other; `catalogue` has all services by name.
//! - `between`: letters between cores and processes.
//! - `work`: jobs outside a loop.
//! - `planted`: servers for tests of the measurement, and the null server.

mod between;
mod blocking;
mod catalogue;
mod children;
mod clock;
mod engines;
mod host;
mod local;
mod log;
mod members;
mod model;
mod models;
mod open;
mod own_connections;
mod planted;
mod sockets;
mod unix_socket;
mod work;

pub use between::membership::PushSessionFactory;
pub use catalogue::{
    HubHost, Implementation, Service, Started, check_hub, serve, serve_handicapped, serve_http2,
    serve_hub, with_metrics_page,
};
pub use engines::serve_engine;
pub use host::{Host, ServeError, Stop};
pub use members::serve_members;
pub use model::{Model, Traits};
pub use own_connections::{serve_sequential, shared_counter};
pub use planted::{
    delay::Delay,
    delayed::serve_delayed,
    null::{Canned, serve_canned},
};
pub use regatta_engine::{Bounds, Memory as HubMemory, Policy};
pub use regatta_service::hub::{
    Access as HubAccess, Api as HubApi, Broker as HubBroker, BrokerTls as HubBrokerTls,
    HistoryLimits, Hub, InvalidPattern, Jwt, Limits as HubLimits, Origin, Password as HubPassword,
    Place as HubPlace, Publish, RoomPattern, RoomRule, Settings as HubSettings,
};
pub use regatta_sys::limit::raise_open_files;
pub use unix_socket::UnixSocket;
