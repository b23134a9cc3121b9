//! How the commands that load a server are told about TLS.

use super::url::Asked;
use anyhow::bail;
use regatta_load::{Roots, Tls};
use std::path::PathBuf;

/// What is asked of a server's certificate, with https://.
#[derive(Clone, Debug, clap::Args)]
pub struct TlsArgs {
    /// Take any certificate of an https:// server
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    /// Trust the CA certificates in this PEM file, instead of those that the system trusts; a
    /// certificate in it that the server itself shows is accepted as it is (pinned)
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

impl TlsArgs {
    /// How to speak TLS, if the URL asks for that.
    pub fn of(&self, asked: &Asked) -> anyhow::Result<Option<Tls>> {
        let Some(host) = &asked.certified else {
            if self.insecure || self.cacert.is_some() {
                bail!("--insecure and --cacert are about certificates; they need an https:// URL");
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
