//! TLS with a broker, and with its Sentinels or the other nodes of its cluster.

use super::url::{BrokerUrl, Server, Target};
use crate::options::{
    certificate::{CERTIFICATE, Pair, client_config},
    renewed::Renewed,
};
use anyhow::{Context, bail, ensure};
use regatta_serve::HubBrokerTls;
use rustls::pki_types::ServerName;
use std::{path::Path, sync::Arc};

/// The options for TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsOptions<'a> {
    pub ca: Option<&'a Path>,
    pub certificate: Option<&'a Path>,
    pub key: Option<&'a Path>,
    pub server_name: Option<&'a str>,
}

impl TlsOptions<'_> {
    /// Reads the files, which are read again when they change. `None`: this broker is reached without TLS.
    ///
    /// # Errors
    /// Says which option is missing or has no use, or which file cannot be used.
    pub fn read(&self, url: &BrokerUrl) -> anyhow::Result<Option<HubBrokerTls>> {
        let Some(ca) = self.ca else {
            ensure!(
                !url.is_tls,
                "--broker rediss needs --broker-ca, a file with the certificate of the CA that has signed that of the \
                 broker"
            );
            return Ok(None);
        };
        ensure!(
            url.is_tls,
            "--broker-ca has no use, because the broker is reached without TLS; write rediss in place of \
             redis in --broker, or leave it out"
        );
        let name = self.name(&url.target)?;
        let pair = self.certificate.zip(self.key);
        let own = pair.map(|(certificate, key)| Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        });
        let ca = ca.to_owned();
        let files = [ca.clone()].into_iter().chain(own.iter().flat_map(Pair::files)).collect();
        let config = Renewed::read(files, CERTIFICATE, move || client_config(&ca, own.as_ref()))?;
        Ok(Some(HubBrokerTls { config: Arc::new(move || config.current()), name }))
    }

    /// The name that the certificates of all servers must have.
    fn name(&self, target: &Target) -> anyhow::Result<ServerName<'static>> {
        let name = match (self.server_name, target) {
            (Some(name), _) => name,
            (None, Target::Server(Server { host, .. })) => host,
            (None, Target::Sentinels(..) | Target::Cluster(_)) => bail!(
                "--broker over TLS needs --broker-server-name, the name in all certificates, because the address of the \
                 master changes"
            ),
        };
        ServerName::try_from(name.to_owned()).with_context(|| {
            format!(
                "{name}: expected a host name or an IP address, which the certificate of the broker must have \
                 (--broker-server-name)"
            )
        })
    }
}
