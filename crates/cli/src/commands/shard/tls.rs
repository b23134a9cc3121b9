//! TLS of the proxy: with its clients, and with the nodes.

use super::{
    refused::{Reason, Refused},
    reports::Reports,
};
use crate::options::{
    certificate::{CERTIFICATE, Pair, client_config, server_config},
    renewed::Renewed,
};
use anyhow::{Context, ensure};
use regatta_service::tls_engine::{Current, Servers, Tls};
use regatta_shard::Sentinels;
use rustls::{ServerConfig, pki_types::ServerName};
use std::{path::PathBuf, sync::Arc};

/// The beginning of the reasons that `Tls` reports.
pub const NO_TLS: &str = "no TLS connection";

/// Options for TLS.
#[derive(Debug, clap::Args)]
pub struct TlsArgs {
    /// Serve clients over TLS (rediss://) with the certificates in this PEM file; the proxy's own
    /// certificate comes first. All files for TLS are read again when they change. Not on threads,
    /// green, fork and prefork
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require clients to have a certificate that a CA in this PEM file has signed
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Connect to all nodes over TLS, and trust certificates that a CA in this PEM file has signed
    #[arg(long, value_name = "PATH")]
    node_tls_ca: Option<PathBuf>,
    /// The proxy's certificate for nodes that require one, in PEM
    #[arg(long, value_name = "PATH", requires = "node_tls_key", requires = "node_tls_ca")]
    node_tls_cert: Option<PathBuf>,
    /// The private key of --node-tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "node_tls_cert")]
    node_tls_key: Option<PathBuf>,
    /// The name or IP address that the certificate of every node must have. Default: the host of the
    /// node in --nodes
    #[arg(long, value_name = "NAME", requires = "node_tls_ca")]
    node_tls_server_name: Option<String>,
}

impl TlsArgs {
    /// The option that turns TLS on, if one does.
    pub fn option(&self) -> Option<&'static str> {
        match (&self.tls_cert, &self.node_tls_ca) {
            (Some(_), _) => Some("--tls-cert"),
            (None, Some(_)) => Some("--node-tls-ca"),
            (None, None) => None,
        }
    }

    /// Whether nodes are connected to over TLS.
    pub fn reaches_nodes(&self) -> bool {
        self.node_tls_ca.is_some()
    }

    /// Whether the certificate of each node must have the name of that node.
    pub fn checks_names(&self) -> bool {
        self.node_tls_ca.is_some() && self.node_tls_server_name.is_none()
    }

    /// Reads the files. `nodes`: each as `HOST:PORT`. `refused`: prints which handshakes of clients fail. `None`: there
    /// is no TLS.
    ///
    /// # Errors
    /// Says which file, or which name, cannot be used.
    pub fn read(&self, nodes: &[String], refused: &Refused) -> anyhow::Result<Option<Arc<Tls>>> {
        let refused = refused.clone();
        let note = move |why: &str| refused.note(Reason::TlsHandshake, why.to_owned());
        let (clients, servers) = (self.clients()?, self.servers(nodes)?);
        let tls = Tls { clients, refused: Some(Box::new(note)), servers };
        Ok(self.option().map(|_| Arc::new(tls)))
    }

    fn clients(&self) -> anyhow::Result<Option<Current<ServerConfig>>> {
        let Some(own) = pair(&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let ca = self.tls_client_ca.clone();
        let files = own.files().into_iter().chain(ca.clone()).collect();
        let config = Renewed::read(files, CERTIFICATE, move || server_config(&own, ca.as_deref()))?;
        Ok(Some(Box::new(move || config.current())))
    }

    fn servers(&self, nodes: &[String]) -> anyhow::Result<Option<Servers>> {
        let Some(ca) = self.node_tls_ca.clone() else { return Ok(None) };
        let own = pair(&self.node_tls_cert, &self.node_tls_key);
        let more = own.iter().flat_map(Pair::files);
        let files = [ca.clone()].into_iter().chain(more).collect();
        let config = Renewed::read(files, CERTIFICATE, move || client_config(&ca, own.as_ref()))?;
        let names = nodes.iter().map(|node| self.name(node)).collect::<anyhow::Result<_>>()?;
        let (nodes, reports) = (nodes.to_vec(), Reports::default());
        let report = move |node: usize, failure: Option<&str>| {
            let failure = failure.map(|why| format!("{NO_TLS}: {why}"));
            let node = nodes.get(node).map_or("", String::as_str);
            reports.report(node, failure.as_deref(), "TLS works again");
        };
        Ok(Some(Servers {
            config: Box::new(move || config.current()),
            names,
            report: Box::new(report),
        }))
    }

    /// The name that the certificate of a node must have.
    fn name(&self, node: &str) -> anyhow::Result<ServerName<'static>> {
        let name = self.node_tls_server_name.as_deref().unwrap_or_else(|| host(node));
        ServerName::try_from(name.to_owned()).with_context(|| {
            format!(
                "{name}: expected a host name or an IP address, which the certificate of the node {node} \
                 must have (--node-tls-server-name)"
            )
        })
    }
}

/// The names of all servers, if Sentinels manage the masters of the nodes: of these, and then of the Sentinels.
///
/// # Errors
/// Fails if nodes are reached over TLS, but the name in their certificates is not given: their addresses change.
pub fn managed(args: &TlsArgs, sentinels: &Sentinels) -> anyhow::Result<Vec<String>> {
    ensure!(
        !args.checks_names(),
        "--node-tls-ca with --sentinels needs --node-tls-server-name, because the addresses of masters change"
    );
    Ok(sentinels.masters.iter().chain(&sentinels.names).cloned().collect())
}

fn pair(certificate: &Option<PathBuf>, key: &Option<PathBuf>) -> Option<Pair> {
    let (certificate, key) = (certificate.clone()?, key.clone()?);
    Some(Pair { certificate, key })
}

/// The host of a node, `HOST:PORT`; that of `[::1]:6379` is `::1`.
fn host(node: &str) -> &str {
    let host = node.rsplit_once(':').map_or(node, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_node_is_what_precedes_its_port() {
        for (node, expected) in [
            ("redis-1.example:6379", "redis-1.example"),
            ("10.0.0.1:6379", "10.0.0.1"),
            ("[::1]:6379", "::1"),
        ] {
            assert_eq!(host(node), expected);
            assert!(ServerName::try_from(host(node)).is_ok(), "{node}");
        }
    }
}
