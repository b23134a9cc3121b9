//! What to configure: TLS with clients, and with the servers that an engine connects to.

use regatta_engine::{Conn, Engine};
use rustls::{ClientConfig, ServerConfig, pki_types::ServerName};
use std::{fmt, sync::Arc};

/// Returns the current configuration; called for each handshake, because certificates are renewed.
pub type Current<T> = Box<dyn Fn() -> Arc<T> + Send + Sync>;

/// Called with the index of a server and why TLS with it has failed, or `None` when it has sent its
/// first bytes over a connection. (A server may refuse a certificate after the handshake.)
pub type Report = Box<dyn Fn(usize, Option<&str>) + Send + Sync>;

/// Called with the reason when the handshake of a client has failed, unless the client had sent nothing.
pub type Refused = Box<dyn Fn(&str) + Send + Sync>;

/// TLS of an engine.
pub struct Tls {
    /// For clients. `None`: they connect without TLS.
    pub clients: Option<Current<ServerConfig>>,
    /// Where clients whose handshake fails are reported, if anywhere.
    pub refused: Option<Refused>,
    /// For servers to which the engine connects. `None`: without TLS.
    pub servers: Option<Servers>,
}

/// TLS with the servers to which an engine connects.
pub struct Servers {
    /// Whom to trust, and the engine's own certificate, if any.
    pub config: Current<ClientConfig>,
    /// The name that the certificate of each server must have, in the order of
    /// [`Upstreams::upstream`].
    pub names: Vec<ServerName<'static>>,
    /// Where failures are reported.
    pub report: Report,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.servers.as_ref().map(|servers| &servers.names);
        f.debug_struct("Tls")
            .field("clients", &self.clients.is_some())
            .field("servers", &names)
            .finish()
    }
}

/// An engine that tells its connections to other servers apart.
pub trait Upstreams: Engine {
    /// The index of the server to which it has opened this connection. `None`: it has not.
    fn upstream(&self, conn: Conn) -> Option<usize>;
}
