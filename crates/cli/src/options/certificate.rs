//! Certificates, keys and CAs for TLS, read again when their files change: renewed ones are used without a restart.

use crate::options::{renewed::Renewed, word::read};
use anyhow::{Context, bail};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What is renewed, for messages.
pub const CERTIFICATE: &str = "certificate";

/// The certificate of a server with its key in two PEM files.
#[derive(Debug)]
pub struct RenewedCertificate(Renewed<CertifiedKey>);

impl RenewedCertificate {
    /// Reads both files.
    ///
    /// # Errors
    /// Says which file cannot be read or contains no PEM, or that the two do not match.
    pub fn read(
        certificate: &Path,
        key: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> anyhow::Result<RenewedCertificate> {
        let pair = Pair { certificate: certificate.to_owned(), key: key.to_owned() };
        let provider = Arc::clone(provider);
        let renewed = Renewed::read(pair.files(), CERTIFICATE, move || {
            let (chain, key) = pair.read()?;
            CertifiedKey::from_der(chain, key, &provider).with_context(|| pair.differs())
        });
        Ok(RenewedCertificate(renewed?))
    }
}

impl ResolvesServerCert for RenewedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }
}

/// A certificate and its key, each in a PEM file.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate and those that lead to its CA; it comes first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Pair {
    /// Both files.
    pub fn files(&self) -> Vec<PathBuf> {
        vec![self.certificate.clone(), self.key.clone()]
    }

    fn read(&self) -> anyhow::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .with_context(|| none(&self.key, "private key"))?;
        Ok((chain, key))
    }

    fn differs(&self) -> String {
        format!(
            "the certificate in {} does not match the key in {}",
            self.certificate.display(),
            self.key.display()
        )
    }
}

/// Reads the configuration of a server. `clients`: the file with the CAs that sign the certificates which its clients
/// must have; `None`: they need none.
///
/// # Errors
/// Says which file cannot be read or used.
pub fn server_config(own: &Pair, clients: Option<&Path>) -> anyhow::Result<ServerConfig> {
    let builder = ServerConfig::builder();
    let builder = match clients {
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots(path)?)).build();
            builder.with_client_cert_verifier(verifier.with_context(|| unusable(path))?)
        }
        None => builder.with_no_client_auth(),
    };
    let (chain, key) = own.read()?;
    let mut config = builder.with_single_cert(chain, key).with_context(|| own.differs())?;
    if clients.is_some() {
        // A session that is resumed would not show the client's certificate again, which may have expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Reads the configuration of a client that trusts the CAs in this file. `own`: its own certificate, if it has one.
///
/// # Errors
/// Says which file cannot be read or used.
pub fn client_config(servers: &Path, own: Option<&Pair>) -> anyhow::Result<ClientConfig> {
    let builder = ClientConfig::builder().with_root_certificates(roots(servers)?);
    let Some(own) = own else { return Ok(builder.with_no_client_auth()) };
    let (chain, key) = own.read()?;
    builder.with_client_auth_cert(chain, key).with_context(|| own.differs())
}

fn roots(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).with_context(|| unusable(path))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| none(path, "certificate"))?;
    if chain.is_empty() {
        bail!(none(path, "certificate"));
    }
    Ok(chain)
}

fn none(path: &Path, what: &str) -> String {
    format!("{} contains no {what} in PEM format", path.display())
}

fn unusable(path: &Path) -> String {
    format!("a CA certificate in {} cannot be used", path.display())
}
