//! The TLS options of the commands that load a server.

use super::url::Target;
use anyhow::bail;
use regatta_load::{Roots, Tls};
use std::path::PathBuf;

/// Options for the certificate of a server with TLS: https://, wss:// or rediss://.
#[derive(Clone, Debug, clap::Args)]
pub struct TlsArgs {
    /// Accept any certificate of an https:// server
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    /// Trust the CA certificates in this PEM file instead of those that the system trusts. If the file
    /// contains the server's own certificate, that is accepted as it is (pinned)
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

impl TlsArgs {
    /// The TLS settings, if the URL requires TLS.
    pub fn of(&self, target: &Target) -> anyhow::Result<Option<Tls>> {
        let Some(host) = &target.certified else {
            if self.insecure || self.cacert.is_some() {
                bail!("--insecure and --cacert apply only to https:// URLs");
            }
            return Ok(None);
        };
        let roots = match &self.cacert {
            _ if self.insecure => Roots::Unchecked,
            Some(file) => Roots::File(file.clone()),
            None => Roots::System,
        };
        Ok(Some(Tls::new(host, &roots)?))
    }
}
