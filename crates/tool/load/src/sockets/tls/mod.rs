//! TLS for the load: the trusted CA certificates, and the name that the server's certificate must have.
//! `tls/session.rs` handles one connection, and `tls/explain.rs` describes failures.

mod explain;
mod session;
mod verifier;

pub(crate) use explain::{explain, is_about_certificate};
pub(crate) use session::{Fault, Session};

use regatta_script::read_at_most;
use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, WebPkiServerVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use verifier::{Accepted, Verifier};

/// The CA certificates (roots) that are trusted to sign the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The CA certificates that the system trusts.
    System,
    /// Only the CA certificates in this PEM file. If the server presents one of these certificates as
    /// its own, it is accepted whatever names and dates it has.
    File(PathBuf),
    /// Every certificate is accepted without a check.
    Unchecked,
}

/// TLS settings of a load: version 1.2 or 1.3, and ALPN if the protocol has a name there. Sessions are
/// not resumed: every connection represents a separate client, and does a full handshake.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// The settings as given, to be sent to load processes.
    asked: Arc<Settings>,
}

/// TLS settings as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The host that the server's certificate must name.
    host: String,
    roots: Trusted,
}

/// The CA certificates that the load trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Trusted {
    /// The system's certificates.
    System,
    /// These certificates, as PEM.
    Pem(String),
    /// Every server certificate is accepted.
    Unchecked,
}

impl TryFrom<Settings> for Tls {
    type Error = TlsError;

    fn try_from(asked: Settings) -> Result<Self, TlsError> {
        Tls::of(asked, Path::new("the message"))
    }
}

impl From<Tls> for Settings {
    fn from(tls: Tls) -> Self {
        Settings::clone(&tls.asked)
    }
}

/// Why TLS cannot be set up, before any connection is opened.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The host is neither a name nor an address.
    #[error("{0:?} is neither a host name nor an IP address, so no certificate can be for it")]
    Host(String),
    /// The file of CA certificates cannot be used.
    #[error("cannot use the CA certificates in {path}: {because}; expected certificates as PEM")]
    Roots {
        /// The file.
        path: PathBuf,
        /// The reason.
        because: String,
    },
    /// The system has no trusted CA certificates.
    #[error("this system has no trusted CA certificates ({0}); pass some with --cacert FILE")]
    NoRoots(String),
    /// rustls rejected the configuration.
    #[error("cannot set up TLS: {0}")]
    Setup(rustls::Error),
}

impl Tls {
    /// Expects a certificate for `host`, a name or an address, and trusts `roots`.
    ///
    /// # Errors
    /// If `host` is neither a name nor an address, or the CA certificates cannot be read or used.
    pub fn new(host: &str, roots: &Roots) -> Result<Self, TlsError> {
        let (roots, origin) = match roots {
            Roots::System => (Trusted::System, Path::new("")),
            Roots::Unchecked => (Trusted::Unchecked, Path::new("")),
            Roots::File(path) => (Trusted::Pem(read(path)?), path.as_path()),
        };
        Self::of(Settings { host: host.to_owned(), roots }, origin)
    }

    /// `origin` is the source of the CA certificates, for error messages.
    fn of(asked: Settings, origin: &Path) -> Result<Self, TlsError> {
        let host = asked.host.as_str();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name =
            ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Host(host.to_owned()))?;
        let config = Arc::new(config(&asked.roots, origin)?);
        Ok(Tls { config, name, asked: Arc::new(asked) })
    }

    /// The same settings, with an application protocol offered by ALPN.
    pub(crate) fn offering(&self, alpn: Option<&str>) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Tls { config: Arc::new(config), ..self.clone() }
    }

    /// Whether the trusted certificates come from a file.
    pub(crate) fn trusts_a_file(&self) -> bool {
        matches!(self.asked.roots, Trusted::Pem(_))
    }

    /// Whether the server's certificate is checked.
    pub fn is_checked(&self) -> bool {
        self.asked.roots != Trusted::Unchecked
    }
}

fn config(roots: &Trusted, origin: &Path) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let accepted = match roots {
        Trusted::System => None,
        Trusted::Pem(pem) => Some(of_pem(pem, &provider).map_err(|why| refuse(origin, why))?),
        Trusted::Unchecked => Some(Accepted::Any),
    };
    let config = match accepted {
        None => config.with_root_certificates(of_system()?),
        Some(accepted) => {
            let verifier = Arc::new(Verifier::new(accepted, &provider));
            config.dangerous().with_custom_certificate_verifier(verifier)
        }
    };
    let mut config = config.with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn of_system() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // Some systems have a few malformed certificates; they are ignored.
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(TlsError::NoRoots(errors.join("; ")));
    }
    Ok(store)
}

/// Maximum size of a file of certificates, in bytes: several times the size of a system's CA
/// certificates.
const MOST_BYTES: u64 = 4 << 20;

fn of_pem(pem: &str, provider: &Arc<CryptoProvider>) -> Result<Accepted, String> {
    let pinned: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let pinned = pinned.map_err(|error| error.to_string())?;
    if pinned.is_empty() {
        return Err("it contains no certificate".into());
    }
    let mut store = RootCertStore::empty();
    for certificate in &pinned {
        store.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Accepted::Trusted { pinned, signed })
}

/// Reads a file of certificates. The bytes between them need not be valid text.
fn read(path: &Path) -> Result<String, TlsError> {
    match read_at_most(path, MOST_BYTES) {
        Ok(Some(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Ok(None) => Err(refuse(path, format!("it is larger than {} MiB", MOST_BYTES >> 20))),
        Err(error) => Err(refuse(path, error.to_string())),
    }
}

fn refuse(path: &Path, because: String) -> TlsError {
    TlsError::Roots { path: path.to_owned(), because }
}
